"""`tiltyard tournament`: play every attack against every guardrail."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

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
from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import (
    Budget,
    BudgetOption,
    JsonOption,
    MarkdownOption,
    SeedOption,
    UnsafeOption,
)
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import format_number, open_console, print_json, safe
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.matches.tournament import Pairing, Tournament, TournamentSettings, enter, hold
from tiltyard.reporting.markdown import bullets, escape, table


def run(
    entrants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENTRANT",
            help="Submissions, directories of submissions, or names of shipped attacks and "
            "guardrails.",
            show_default=False,
        ),
    ] = None,
    *,
    whole_ladder: Annotated[
        bool, typer.Option("--ladder", help="Add all shipped attacks and guardrails.")
    ] = False,
    budget: BudgetOption = Budget.QUICK,
    agent: AgentOption = "",
    base_url: BaseUrlOption = "",
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = "",
    seed: SeedOption = PUBLIC_SEED,
    ruleset: AgentRulesetOption = "",
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Play every attack against every guardrail, and print the scores as a matrix.

    A submission with an attack and a guardrail enters both. If a pair fails, the matrix shows the
    reason and the other pairs play on. The command writes no file.

    All pairs play with the same agent, and share --max-requests and --max-cost equally.

    Exit codes:

    - 0: at least one pair has a score.
    - 1: every pair failed.
    - 2: the command or an entrant is wrong.
    - 3: this machine has no sandbox.
    - 130: interrupted.

    Example: tiltyard tournament submissions/ "data flow" cartographer --budget quick
    """
    with (
        exit_on_error("interrupted; run the command again to start over"),
        tempfile.TemporaryDirectory(prefix="tiltyard-tournament-") as name,
        ProgressBars() as bars,
    ):
        scratch = Path(name)
        scratch.chmod(0o755)  # a guest runs as another user, who must be able to read it
        choice = choose_agent(agent, base_url, max_requests, max_cost, price)
        choice, rules = settle_agent(choice, ruleset, named=bool(agent))
        choice.check_key()
        settings = TournamentSettings(rules, budget.value, seed, unsafe, choice.in_full())
        entered = enter(entrants or [], scratch, whole_ladder=whole_ladder)
        done = hold(entered, settings, bars)
    if as_json:
        print_json(done)
    elif as_markdown:
        typer.echo(_markdown(done))
    else:
        _print_matrix(open_console(), done)
    if all(pairing.score is None for pairing in done.pairings):
        raise typer.Exit(1)


def _title(done: Tournament) -> str:
    return (
        f"Offense scores (raw points): ruleset {done.ruleset}, {done.budget} budget, "
        f"seed {done.seed}, agent {done.agent}, isolation level {done.level}"
    )


def _head(done: Tournament) -> list[str]:
    return ["attack", *(guardrail.name for guardrail in done.guardrails), "total"]


def _matrix(done: Tournament) -> Iterator[tuple[str, list[Pairing], str]]:
    width = len(done.guardrails)
    for at, attack in enumerate(done.attacks):
        total = f"{format_number(attack.score)} ({attack.raw})"
        yield attack.name, list(done.pairings[at * width : (at + 1) * width]), total


def _cell(pairing: Pairing) -> str:
    if pairing.failure:
        return f"failed ({pairing.failure})"
    return f"{format_number(pairing.score)} ({pairing.raw})"


def _let_through(done: Tournament) -> list[str]:
    let = [f"{format_number(guardrail.score)} ({guardrail.raw})" for guardrail in done.guardrails]
    return ["let through", *let, ""]


def _failures(done: Tournament) -> Iterator[str]:
    for pairing in done.pairings:
        if pairing.failure:
            yield (
                f"{pairing.attack} against {pairing.guardrail}: {pairing.failure}: {pairing.reason}"
            )
    for refused in done.refused:
        yield f"{refused.name} was refused: {refused.reason}"


def _print_matrix(console: Console, done: Tournament) -> None:
    rows: list[list[str | Text]] = [
        [name, *(_coloured_cell(pairing) for pairing in pairings), total]
        for name, pairings, total in _matrix(done)
    ]
    print_table(console, _title(done), _head(done), [*rows, _let_through(done)])
    for failure in _failures(done):
        print_line(console, failure)


def _coloured_cell(pairing: Pairing) -> Text:
    return Text(safe(_cell(pairing)), "bold red" if pairing.failure else "")


def _markdown(done: Tournament) -> str:
    rows = [
        [name, *(_cell(pairing) for pairing in pairings), total]
        for name, pairings, total in _matrix(done)
    ]
    head = [*map(escape, _head(done))]
    matrix = table(head, [[*map(escape, row)] for row in [*rows, _let_through(done)]])
    failures = bullets(map(escape, _failures(done)))
    blocks = ("# Tournament", escape(_title(done)), matrix, failures)
    return "\n\n".join(block for block in blocks if block)
