"""`tiltyard tournament`: every attack against every guardrail."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from tiltyard.cli.agents import find_deterministic_ruleset
from tiltyard.cli.bars import Bars
from tiltyard.cli.evaluate import Budget
from tiltyard.cli.problems import in_one_sentence
from tiltyard.cli.screen import UnsafeOption, number, open_console, shown
from tiltyard.cli.showing import escaped, print_table, say
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.matches.tournament import Pairing, Tournament, TournamentSettings, enter, hold
from tiltyard.studies.calibration_tables import table


def run(
    entrants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Submissions, directories of submissions, or names of rungs.",
            show_default=False,
        ),
    ] = None,
    *,
    whole_ladder: Annotated[
        bool, typer.Option("--ladder", help="All shipped attacks and guardrails as well.")
    ] = False,
    budget: Annotated[Budget, typer.Option(help="How many steps: see the ruleset.")] = Budget.QUICK,
    seed: Annotated[int, typer.Option(help="The scenario's seed.")] = PUBLIC_SEED,
    ruleset: Annotated[str, typer.Option(help="A ruleset's name, or a .toml file.")] = "design",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Play every attack against every guardrail, and show what each made of each.

    A submission with both enters both. A pair that fails has its reason in the matrix and stops
    nobody else. With the quick budget unless you ask for the official one.

    Exit codes: 0 something was played, 1 every pair failed, 2 something about the command or an
    entrant is wrong, 3 no jail on this machine, 130 interrupted.

    Example: tiltyard tournament submissions/ "data flow" cartographer --budget quick
    """
    with (
        in_one_sentence("interrupted; a tournament begins anew"),
        tempfile.TemporaryDirectory(prefix="tiltyard-tournament-") as name,
        Bars() as bars,
    ):
        scratch = Path(name)
        scratch.chmod(0o755)  # a guest is another user, and must be able to read it
        rules = find_deterministic_ruleset(ruleset)
        settings = TournamentSettings(rules, budget.value, seed, unsafe)
        entered = enter(entrants or [], scratch, whole_ladder=whole_ladder)
        done = hold(entered, settings, bars)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(done), indent=1).decode())
    elif as_markdown:
        typer.echo("\n".join(_markdown(done)))
    else:
        _show(open_console(), done)
    if all(pairing.score is None for pairing in done.pairings):
        raise typer.Exit(1)


def _title(done: Tournament) -> str:
    return (
        f"Attack scores (raw points): ruleset {done.ruleset}, {done.budget} budget, "
        f"seed {done.seed}, isolation level {done.level}"
    )


def _head(done: Tournament) -> list[str]:
    return ["attack", *(guardrail.name for guardrail in done.guardrails), "total"]


def _matrix(done: Tournament) -> Iterator[tuple[str, list[Pairing], str]]:
    width = len(done.guardrails)
    for at, attack in enumerate(done.attacks):
        total = f"{number(attack.score)} ({attack.raw})"
        yield attack.name, list(done.pairings[at * width : (at + 1) * width]), total


def _cell(pairing: Pairing) -> str:
    if pairing.failure:
        return f"failed ({pairing.failure})"
    return f"{number(pairing.score)} ({pairing.raw})"


def _let(done: Tournament) -> list[str]:
    let = [f"{number(guardrail.score)} ({guardrail.raw})" for guardrail in done.guardrails]
    return ["let through", *let, ""]


def _failures(done: Tournament) -> Iterator[str]:
    for pairing in done.pairings:
        if pairing.failure:
            yield (
                f"{pairing.attack} against {pairing.guardrail}: {pairing.failure}: {pairing.reason}"
            )
    for refused in done.refused:
        yield f"{refused.name} was refused: {refused.reason}"


def _show(console: Console, done: Tournament) -> None:
    rows: list[list[str | Text]] = [
        [name, *(_coloured(pairing) for pairing in pairings), total]
        for name, pairings, total in _matrix(done)
    ]
    print_table(console, _title(done), _head(done), [*rows, _let(done)])
    for failure in _failures(done):
        say(console, failure)


def _coloured(pairing: Pairing) -> Text:
    return Text(shown(_cell(pairing)), "bold red" if pairing.failure else "")


def _markdown(done: Tournament) -> Iterator[str]:
    yield from ("# Tournament", "", escaped(_title(done)), "")
    rows = [
        [name, *(_cell(pairing) for pairing in pairings), total]
        for name, pairings, total in _matrix(done)
    ]
    head = [*map(escaped, _head(done))]
    yield from table(head, [[*map(escaped, row)] for row in [*rows, _let(done)]])
    failures = [*_failures(done)]
    if failures:
        yield ""
        yield from (f"- {escaped(failure)}" for failure in failures)
