"""`tiltyard evaluate`: play a submission's matches and write a report."""

from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import structs

from tiltyard.agents.choice import AgentChoiceError
from tiltyard.cli.agent_options import (
    AgentOption,
    AgentRulesetOption,
    BaseUrlOption,
    MaxCostOption,
    MaxRequestsOption,
    PriceOption,
    choose_agent,
    settle_agent,
)
from tiltyard.cli.errors import MATCH_FAILED, WRONG_USE, exit_on_error, refuse
from tiltyard.cli.options import (
    DEFAULT_STORE,
    Budget,
    BudgetOption,
    JsonOption,
    KeyOption,
    ScenarioOption,
    SealedOption,
    SeedOption,
    StoreOption,
    UnsafeOption,
    complete_opponent,
    complete_track,
    parse_track,
    read_worlds,
)
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.score_tables import print_overview, print_scores
from tiltyard.cli.terminal import print_json
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.processes import usable_cores
from tiltyard.reporting.schema import summary
from tiltyard.runs.evaluate import Finished, Unplayed, evaluate, evaluate_all
from tiltyard.runs.request import Request
from tiltyard.runs.store import Store

CONTINUES: Final = "interrupted; run the same command to continue"


def run(
    submissions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SUBMISSION...", help="Directories, .zip files or .py files, one or several."
        ),
    ],
    *,
    track: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=complete_track,
            metavar="offense|defense",
            help="Play this track only. Without it, play every track that the submission has.",
        ),
    ] = None,
    budget: BudgetOption = Budget.OFFICIAL,
    opponent: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_opponent,
            help="Practice against this opponent: a shipped attack or guardrail by name, or a "
            "submission.",
        ),
    ] = "",
    agent: AgentOption = "",
    base_url: BaseUrlOption = "",
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = "",
    seed: SeedOption = PUBLIC_SEED,
    seeds: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Play N other seeds too and print their scores."),
    ] = 0,
    scenario: ScenarioOption = None,
    ruleset: AgentRulesetOption = "",
    key: KeyOption = None,
    sealed: SealedOption = None,
    store: StoreOption = DEFAULT_STORE,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore cached results and play again.")
    ] = False,
    unsafe: UnsafeOption = False,
    output: Annotated[
        bool, typer.Option("--output", help="Print what the submission printed, too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Play the matches of one or several submissions, print the scores and write reports.

    Offense plays your attack against the ruleset's guardrail. Defense plays the baseline attack and
    ordinary users' tasks against your guardrail. Both run in the sandbox, and the same submission
    gets the same score on every machine.

    The report goes to the store as `report.json` and `report.html`. If the store already has this
    run, the command prints it without playing. A practice run keeps what the submission prints;
    an official run does not. With a language model as the agent, the store also
    keeps every exchange with the model, and `tiltyard replay-match` replays the match from them.

    The command uses all cores that it may use: for the worlds of an official run, and for several
    practice runs. The results are the same on any number of cores. In a pipe, it prints progress
    lines on stderr.

    Exit codes:

    - 0: every match has a score.
    - 1: a match failed, or refuses what `tiltyard validate` refuses.
    - 2: the command or the submission is wrong.
    - 3: this machine has no sandbox.
    - 130: interrupted. Run the same command to continue.

    Example: tiltyard evaluate my-submission --budget quick

    Example: tiltyard evaluate guardrail.py --opponent cartographer

    Example: tiltyard evaluate submission.zip --key organizer.key --json

    Example: tiltyard evaluate submissions/* --key organizer.key

    Example: tiltyard evaluate guardrail.py --ruleset arena
    """
    with exit_on_error(CONTINUES):
        choice = choose_agent(agent, base_url, max_requests, max_cost, price)
        choice, rules = settle_agent(choice, ruleset, named=bool(agent))
        if seeds and (choice.max_requests, choice.max_cost) != (None, None):
            raise AgentChoiceError(
                "--max-requests and --max-cost limit one run, and --seeds plays several; run the "
                "command once for each --seed instead"
            )
        paths = [*dict.fromkeys(map(str, submissions))]
        if len(paths) > 1 and (seeds or output):
            refuse("--seeds and --output need a single submission; name one")
        request = Request(
            paths[0],
            rules,
            tuple(map(parse_track, track or ())),
            budget.value,
            seed,
            opponent,
            unsafe,
            choice,
        )
        worlds, kept = read_worlds(scenario, key, sealed), Store(store)
        at_once = usable_cores()
        if len(paths) > 1:
            requests = [structs.replace(request, submission=path) for path in paths]
            with ProgressBars(lines=True) as bars:
                done = evaluate_all(
                    requests, kept, worlds=worlds, fresh=fresh, progress=bars, at_once=at_once
                )
            _print_all(done, as_json=as_json)
            return
        with ProgressBars(lines=True) as bars:
            first = evaluate(
                request, kept, worlds=worlds, fresh=fresh, progress=bars, at_once=at_once
            )
            others = [
                evaluate(structs.replace(request, seed=other), kept, fresh=fresh, progress=bars)
                for other in _other_seeds(seed, seeds)
            ]
    if as_json:
        _print_json(first, others, output=output)
    else:
        print_scores(first, others, output=output)
    if first.report.failures:
        raise typer.Exit(MATCH_FAILED)


def _print_all(done: list[Finished | Unplayed], *, as_json: bool) -> None:
    """Print the results of several submissions, and exit with a code if one has no score."""
    finished = [one for one in done if isinstance(one, Finished)]
    unplayed = [one for one in done if isinstance(one, Unplayed)]
    if as_json:
        print_json([*(summary(one.report) for one in finished), *unplayed])
    else:
        print_overview(finished, unplayed)
    if unplayed:
        raise typer.Exit(WRONG_USE)
    if any(one.report.failures for one in finished):
        raise typer.Exit(MATCH_FAILED)


def _other_seeds(seed: int, count: int) -> list[int]:
    return [other for other in range(1, count + 2) if other != seed][:count]


def _print_json(first: Finished, others: list[Finished], *, output: bool) -> None:
    shown = summary(first.report)
    if output:
        shown["output"] = first.report.output
    if others:
        shown["other_seeds"] = [summary(other.report) for other in others]
    print_json(shown)
