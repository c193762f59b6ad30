"""`tiltyard probe`: how easily strangers move an agent, and how far a guardrail helps."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from tiltyard.agent import Agent
from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.cli.bars import Bars
from tiltyard.cli.evaluate import BROKEN_OFF, ScenarioOption
from tiltyard.cli.problems import in_one_sentence, refuse
from tiltyard.cli.screen import UnsafeOption, open_console
from tiltyard.cli.showing import print_table, say
from tiltyard.competition.opponents import Lodging, Opponent, OpponentError, find_opponent
from tiltyard.competition.runs import NoJailError
from tiltyard.competition.susceptibility import (
    DEFAULT_PER_FAMILY,
    BrokenOffError,
    MakeGuardrail,
    measure,
)
from tiltyard.competition.susceptibility_page import (
    ASIDE,
    family_tables,
    page,
    setting,
    task_tables,
)
from tiltyard.competition.susceptibility_schema import DEFINITIONS, Susceptibility
from tiltyard.env import PUBLIC_SEED
from tiltyard.guardrail import GuardrailGoneError
from tiltyard.isolation.limits import Level
from tiltyard.isolation.probing import probe
from tiltyard.plain_files import write_whole
from tiltyard.reporting.page import Table
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate

DATA: Final = "susceptibility.json"
PAGE: Final = "susceptibility.html"
_A_DAY: Final = 86_400.0
"""A guest waits for an agent that may be slow; it is the agent's time, not the guest's."""


def run(  # noqa: PLR0913 - options
    *,
    agent: Annotated[str, typer.Option(help="Who is tried: deterministic.")] = "deterministic",
    guardrail: Annotated[
        str, typer.Option(help="Try it past this one as well: a rung's name, or a submission.")
    ] = "",
    seed: Annotated[int, typer.Option(help="The scenario's seed.")] = PUBLIC_SEED,
    scenario: ScenarioOption = None,
    per_family: Annotated[
        int, typer.Option(help="Play so many documents of each family, at most.", min=1)
    ] = DEFAULT_PER_FAMILY,
    out: Annotated[
        Path | None, typer.Option(help=f"Write {DATA} and {PAGE} into this directory.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Measure how easily strangers' words move an agent, without a guardrail and with one.

    Leads the agent to documents with injections in them, family by family, and counts which it
    followed, which the guardrail stopped, which it refused and which it ignored. Then plays the
    benign tasks. Every share has its 95% interval.

    Exit codes: 0 it was measured, 1 the agent or the guardrail broke down, 2 something about the
    command is wrong, 3 no jail on this machine, 130 interrupted.

    Example: tiltyard probe --guardrail "data flow" --per-family 5 --out probe
    """
    with in_one_sentence("interrupted; a probe begins anew"):
        world = generate(seed) if scenario is None else load_scenario(scenario)
        try:
            with (
                open_agent(agent) as tried,
                _opened(guardrail, unsafe=unsafe) as (name, make),
                Bars() as bars,
            ):
                found = measure(
                    tried, world, make, guardrail=name, per_family=per_family, watcher=bars
                )
        except BrokenOffError as error:
            refuse(str(error), BROKEN_OFF)
        except GuardrailGoneError as error:
            refuse(f"the guardrail is no more: {error}", BROKEN_OFF)
        data = msgspec.json.format(msgspec.json.encode(found), indent=1)
        if out is not None:
            write_whole(out / DATA, data + b"\n")
            write_whole(out / PAGE, page(found).encode())
    if as_json:
        typer.echo(data.decode())
        return
    console = open_console()
    _show(console, found)
    if out is not None:
        say(console, f"written: {out / PAGE} and {DATA} beside it")


@contextmanager
def open_agent(name: str) -> Iterator[Agent]:
    """Give the agent of that name, for as long as it is needed."""
    if name != DeterministicAgent.name:
        raise OpponentError(f"there is no agent {name!r}; there is: {DeterministicAgent.name}")
    yield DeterministicAgent()


@contextmanager
def _opened(wanted: str, *, unsafe: bool) -> Iterator[tuple[str, MakeGuardrail | None]]:
    """Give a guardrail's name and what makes it, jailed if it is a stranger's."""
    if not wanted:
        yield "", None
        return
    with tempfile.TemporaryDirectory(prefix="tiltyard-probe-") as name, ExitStack() as stack:
        scratch = Path(name)
        scratch.chmod(0o755)  # a guest is another user, and must be able to read it
        found: Opponent = find_opponent("guardrail", wanted, scratch / "guardrail")
        if found.submission is not None and not unsafe and probe().level is Level.C:
            raise NoJailError("this machine cannot confine a stranger's code")
        yield found.name, Lodging(unsafe=unsafe, defense_seconds=_A_DAY).maker(found, stack)


def _print_families(console: Console, table: Table) -> None:
    """Print a table so that it fits a terminal: of what stands aside, the last row is enough."""
    names = [one.title for one in table.columns]
    kept = [at for at, name in enumerate(names) if name not in ASIDE]
    rows = [[row[at] for at in kept] for row in table.rows]
    print_table(console, table.caption, [names[at] for at in kept], rows)
    aside = [f"{name} {table.rows[-1][at]}" for at, name in enumerate(names) if name in ASIDE]
    if aside:
        say(console, f"among all of these: {', '.join(aside)}")


def _show(console: Console, found: Susceptibility) -> None:
    say(console, setting(found))
    for table in family_tables(found):
        _print_families(console, table)
    for table in task_tables(found):
        print_table(console, table.caption, [one.title for one in table.columns], table.rows)
    if found.tasks_missing:
        say(console, f"no benign tasks: {found.tasks_missing}")
    for word, meaning in DEFINITIONS.items():
        say(console, f"{word}: {meaning}")
