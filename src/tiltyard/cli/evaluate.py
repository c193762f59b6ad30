"""`tiltyard evaluate`, `verify` and `key`: play a submission's matches, and play them again."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from msgspec import structs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.agents.choice import AgentChoiceError
from tiltyard.cli.agents import (
    AgentOption,
    BaseUrlOption,
    MaxCostOption,
    MaxRequestsOption,
    PriceOption,
    check_agent,
    choose_agent,
)
from tiltyard.cli.bars import Bars
from tiltyard.cli.problems import WRONG_USE, in_one_sentence, refuse
from tiltyard.cli.screen import DEFAULT_STORE, StoreOption, UnsafeOption, shown, shown_lines
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.reporting.breakdown import many
from tiltyard.reporting.schema import ModelUse, Report, summary
from tiltyard.rulesets.ruleset import find_ruleset
from tiltyard.runs.evaluate import Finished
from tiltyard.runs.evaluate import evaluate as evaluate_request
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import make_key, read_key
from tiltyard.runs.request import Request
from tiltyard.runs.store import PAGE, Store, find_report, has_record
from tiltyard.runs.verify import verify
from tiltyard.world.fixtures import load_scenario

BROKEN_OFF: Final = 1
GOES_ON: Final = "interrupted; the same command goes on from here"


class Track(StrEnum):
    OFFENSE = "offense"
    DEFENSE = "defense"


class Budget(StrEnum):
    QUICK = "quick"
    OFFICIAL = "official"


KeyOption = Annotated[
    Path | None, typer.Option("--key", help="An organizer's key: play the official seeds.")
]
ScenarioOption = Annotated[
    Path | None, typer.Option("--scenario", help="A directory of fixtures, instead of a seed.")
]


def evaluate(
    submission: Annotated[Path, typer.Argument(help="A directory, a .zip or a .py file.")],
    *,
    track: Annotated[
        list[Track] | None, typer.Option(help="Play this one alone. Else all that are there.")
    ] = None,
    budget: Annotated[Budget, typer.Option(help="How many steps: see the ruleset.")] = (
        Budget.OFFICIAL
    ),
    opponent: Annotated[
        str, typer.Option(help="Practice against another: a rung's name, or a submission.")
    ] = "",
    agent: AgentOption = "",
    base_url: BaseUrlOption = "",
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = "",
    seed: Annotated[int, typer.Option(help="Another scenario, for practice.")] = PUBLIC_SEED,
    seeds: Annotated[
        int, typer.Option(help="Play so many other seeds too, and show the spread.", min=0)
    ] = 0,
    scenario: ScenarioOption = None,
    ruleset: Annotated[
        str,
        typer.Option(
            help="A ruleset's name, or a .toml file.",
            show_default="design, or design-openai with a model as the agent",
        ),
    ] = "",
    key: KeyOption = None,
    store: StoreOption = DEFAULT_STORE,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Play again what is in the store.")
    ] = False,
    unsafe: UnsafeOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one object, and no table.")
    ] = False,
) -> None:
    """Play a submission's matches, and write a report.

    Offense: your attack against the optimal guardrail. Defense: the baseline Go-Explore and the
    deterministic agent against your guardrail. Both in the jail, both deterministic.

    With --agent openai:MODEL (the key from OPENAI_API_KEY) or --agent local, the attack speaks to
    a language model; every exchange is recorded, and `tiltyard replay-match` plays it again.

    For example, in practice `tiltyard evaluate my-submission --budget quick`, against somebody
    else `tiltyard evaluate guardrail.py --opponent cartographer`, and as an organizer
    `tiltyard evaluate submission.zip --key organizer.key --json`.

    Exit codes: 0 there is a score, 1 a match was broken off, 2 something about the command or the
    submission is wrong, 3 no jail on this machine, 130 interrupted (the same command goes on).
    """
    with in_one_sentence(GOES_ON):
        choice = choose_agent(agent, base_url, max_requests, max_cost, price)
        rules = find_ruleset(ruleset or ("design-openai" if choice.traits.metered else "design"))
        if not agent:
            # A ruleset that names a model is played with it.
            choice = structs.replace(choice, name=rules.play.agent)
        check_agent(choice, rules)
        if seeds and (choice.max_requests, choice.max_cost) != (None, None):
            raise AgentChoiceError(
                "--seeds plays several runs, and a ceiling is for one; play one --seed after the "
                "other"
            )
        request = Request(
            str(submission),
            rules,
            tuple(one.value for one in track or ()),
            budget.value,
            seed,
            opponent,
            unsafe,
            choice,
        )
        worlds, kept = _read_worlds(scenario, key), Store(store)
        with Bars() as bars:
            finished = evaluate_request(request, kept, worlds=worlds, fresh=fresh, progress=bars)
            others = [
                evaluate_request(
                    structs.replace(request, seed=other), kept, fresh=fresh, progress=bars
                )
                for other in _other_seeds(seed, seeds)
            ]
        if as_json:
            told_report = summary(finished.report)
            if others:
                told_report["other_seeds"] = [summary(other.report) for other in others]
            typer.echo(msgspec.json.format(msgspec.json.encode(told_report), indent=1).decode())
        else:
            show(finished, others)
        if finished.report.failures:
            raise typer.Exit(BROKEN_OFF)


def _read_worlds(scenario: Path | None, key: Path | None) -> Worlds:
    own = None if scenario is None else load_scenario(scenario)
    return Worlds(own, None if key is None else read_key(key))


def _other_seeds(seed: int, count: int) -> list[int]:
    return [other for other in range(1, count + 2) if other != seed][:count]


def verify_report(
    report: Annotated[str, typer.Argument(help="A report, its directory, or a run's id.")],
    *,
    scenario: ScenarioOption = None,
    key: KeyOption = None,
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Play a report's run again, and compare the digests and every figure.

    A match with a language model is played from its record: see `tiltyard replay-match`.

    Example: tiltyard verify .tiltyard/runs/36c0aed0a5fd25e4

    Exit codes: 0 the same, 1 different, 2 something about the command is wrong.
    """
    with in_one_sentence():
        _play_again(find_report(report, Store(store)), store, scenario, key, unsafe=unsafe)


def replay_match(
    run: Annotated[str, typer.Argument(help="A run with a model: its id, directory or report.")],
    *,
    scenario: ScenarioOption = None,
    key: KeyOption = None,
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Play a match with a language model again, from its record: no server and no network.

    Example: tiltyard replay-match .tiltyard/runs/36c0aed0a5fd25e4

    Exit codes: 0 the same digest, 1 another, 2 something about the command is wrong.
    """
    with in_one_sentence():
        path = find_report(run, Store(store))
        if not has_record(path):
            refuse(
                f"{path.parent} has no record of a model's answers; a run with the deterministic "
                "agent is played again by `tiltyard verify`",
                WRONG_USE,
            )
        _play_again(path, store, scenario, key, unsafe=unsafe)


def _play_again(
    path: Path, store: Path, scenario: Path | None, key: Path | None, *, unsafe: bool
) -> None:
    worlds = _read_worlds(scenario, key)
    with Bars() as bars:
        verified = verify(path, Store(store), worlds=worlds, unsafe=unsafe, progress=bars)
    if not verified.same:
        typer.echo(f"different: the report says {shown(verified.expected)}", err=True)
        typer.echo(f"           played again    {verified.found}", err=True)
        for name in verified.different:
            typer.echo(f"           {name} is another", err=True)
        for failure in verified.failures:
            typer.echo(f"           {shown(failure)}", err=True)
        raise typer.Exit(BROKEN_OFF)
    typer.echo(f"the same: {verified.found}")


def make_key_file(
    path: Annotated[Path, typer.Argument(help="Where to write it. It must not be there yet.")],
) -> None:
    """Make an organizer's key, from which official seeds are drawn. Keep it to yourself.

    Example: tiltyard key organizer.key
    """
    try:
        path.touch(0o600, exist_ok=False)
        path.write_text(make_key(), encoding="ascii")
    except OSError as error:
        refuse(f"{path}: {error.strerror}", WRONG_USE)
    typer.echo(f"written: {path}")


def show(finished: Finished, others: list[Finished]) -> None:
    """Print a report as tables."""
    report = finished.report
    console = Console(highlight=False)
    if finished.from_store:
        console.print("[dim]played before; --fresh plays it again[/dim]")
    console.print(_scores(report))
    for failure in report.failures:
        said = shown(failure.message)
        console.print(Text(f"{failure.track} was broken off ({failure.kind}): {said}"))
        for part in (failure.call and f"during: {failure.call}", failure.traceback, failure.output):
            if part:
                console.print(Text(shown_lines(part), style="dim"))
    for note in report.notes:
        console.print(Text(shown_lines(note)))
    if not report.comparable:
        reasons = "; ".join(map(shown, report.not_comparable_because))
        console.print(Text(f"not comparable: {reasons}"))
    if others:
        console.print(_spread([finished, *others]))
    console.print(Text(f"report: {shown(finished.directory / PAGE)}"), soft_wrap=True)


def _scores(report: Report) -> Table:
    table = Table(title=Text(f"{shown(report.submission.name)}, run {report.run_id}"))
    for name in ("match", "score", "how it came about"):
        table.add_column(name, justify="right" if name == "score" else "left")
    offense, defense = report.offense, report.defense
    if offense is not None:
        by = ", ".join(f"{name} {count}" for name, count in offense.findings_by_predicate.items())
        table.add_row(
            "offense",
            f"{offense.score:.2f}",
            Text(
                f"raw {offense.raw:g}: {many(offense.cores, 'core', 'cores')}, "
                f"{many(offense.unique_cells, 'cell', 'cells')}, "
                f"against {shown(offense.opponent)}\nfindings: {by or 'none'}"
                + "".join(f"\n{_model(one)}" for one in offense.models)
            ),
        )
    if defense is not None:
        by = ", ".join(f"{name} {count}" for name, count in defense.breaches_by_predicate.items())
        stopped = ", ".join(
            f"{name} {count}"
            for name, count in defense.false_positives_by_operation.items()
            if count
        )
        table.add_row(
            "defense",
            f"{defense.score:.2f}",
            f"{many(defense.breaches, 'breach', 'breaches')}: {by or 'none'}\n"
            f"{defense.false_positives:g} of {defense.benign_trials} benign trials failed"
            f"{': ' if stopped else ''}{stopped}",
        )
    final = "none" if report.final_score is None else f"{report.final_score:.2f}"
    table.add_section()
    level = f"ruleset {report.ruleset}, {report.setting.budget} budget, level "
    table.add_row("[b]final[/b]", f"[b]{final}[/b]", f"{level}{report.isolation.level}")
    return table


def _model(use: ModelUse) -> str:
    tokens = use.prompt_tokens + use.completion_tokens
    cost = "" if use.cost is None else f", ${use.cost:.2f}"
    return (
        f"agent {shown(use.name)} ({use.manner}): {use.requests:,} of {use.budget:,} requests, "
        f"{tokens:,} tokens{cost}"
    )


def _spread(runs: list[Finished]) -> Table:
    table = Table(title="other seeds")
    for name in ("seed", "offense", "defense", "final"):
        table.add_column(name, justify="right")
    rows = [
        (
            ", ".join(map(str, one.report.setting.seeds)),
            one.report.offense and one.report.offense.score,
            one.report.defense and one.report.defense.score,
            one.report.final_score,
        )
        for one in runs
    ]
    for seed, *scores in rows:
        table.add_row(seed, *("" if score is None else f"{score:.2f}" for score in scores))
    table.add_section()
    for name, pick in (("least", min), ("most", max)):
        columns = zip(*(scores for _, *scores in rows), strict=True)
        known = [[score for score in column if score is not None] for column in columns]
        table.add_row(name, *(f"{pick(column):.2f}" if column else "" for column in known))
    return table
