"""`tiltyard probe`: measure how easily injections steer an agent."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tiltyard.agents.choice import AgentChoice
from tiltyard.cli.agent_options import (
    AGENT_HELP,
    BaseUrlOption,
    MaxCostOption,
    MaxRequestsOption,
    PriceOption,
    check_agent,
    choose_agent,
)
from tiltyard.cli.errors import MATCH_FAILED, exit_on_error, refuse
from tiltyard.cli.options import JsonOption, ScenarioOption, SeedOption, UnsafeOption
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, print_json
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.reporting.page import Table
from tiltyard.reporting.susceptibility_page import (
    ASIDE,
    family_tables,
    setting,
    task_tables,
    warnings,
)
from tiltyard.reporting.susceptibility_schema import Susceptibility
from tiltyard.studies.probe import (
    DATA,
    PAGE,
    ProbeSettings,
    ruleset_for,
    run_probe,
    write_probe,
)
from tiltyard.studies.susceptibility import DEFAULT_PER_FAMILY, DEFAULT_VARIANTS, BrokenOffError


def run(
    *,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help=f"The agent to measure: {AGENT_HELP}")
    ] = AgentChoice().name,
    base_url: BaseUrlOption = "",
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = "",
    guardrail: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure with this guardrail too: a shipped guardrail's name, or a submission.",
        ),
    ] = "",
    seed: SeedOption = PUBLIC_SEED,
    scenario: ScenarioOption = None,
    per_family: Annotated[
        int, typer.Option(metavar="N", min=1, help="Play at most N documents of each family.")
    ] = DEFAULT_PER_FAMILY,
    variants: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Play N ordinary tasks of each benign operation."),
    ] = DEFAULT_VARIANTS,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"Write {DATA} and {PAGE} to this directory, and keep a model's answers there.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore the answers in --out and ask the model again.")
    ] = False,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Measure how easily injections steer an agent, without a guardrail and with one.

    The agent reads documents with injections, family by family. The command counts which
    injections the agent followed, the guardrail stopped, the agent refused and the agent ignored.
    Then it plays the benign tasks. Every share comes with its 95% interval.

    Exit codes:

    - 0: the measurement is complete.
    - 1: the agent or the guardrail failed.
    - 2: the command is wrong.
    - 3: this machine has no sandbox.
    - 130: interrupted. With --out, run the same command to continue.

    Example: tiltyard probe --guardrail "data flow" --per-family 5 --out probe

    Example: tiltyard probe --agent openai:my-model --base-url http://127.0.0.1:8000/v1 --out probe
    """
    hint = "" if out is None else "; run the same command to continue"
    with exit_on_error(f"interrupted{hint}"):
        choice = choose_agent(agent, base_url, max_requests, max_cost, price)
        check_agent(choice, ruleset_for(choice))
        settings = ProbeSettings(
            choice, guardrail, seed, scenario, per_family, variants, out, fresh, unsafe
        )
        found = _measure(settings, hint)
        if out is not None:
            write_probe(found, out)
    if as_json:
        print_json(found)
        return
    console = open_console()
    _print_results(console, found)
    if out is not None:
        print_line(console, f"written: {out / PAGE}, {out / DATA}")


def _measure(settings: ProbeSettings, hint: str) -> Susceptibility:
    try:
        with ProgressBars() as bars:
            return run_probe(settings, bars)
    except (BrokenOffError, AgentGoneError) as error:
        refuse(f"{error}{hint}", MATCH_FAILED)
    except GuardrailGoneError as error:
        refuse(f"the guardrail failed: {error}", MATCH_FAILED)


def _print_results(console: Console, found: Susceptibility) -> None:
    print_line(console, setting(found))
    for table in family_tables(found):
        _print_families(console, table)
    for table in task_tables(found):
        print_table(console, table.caption, [one.title for one in table.columns], table.rows)
    if found.tasks_missing:
        print_line(console, f"no benign tasks: {found.tasks_missing}")
    for sentence in warnings(found):
        print_line(console, sentence)
    print_line(console, "The page that --out writes explains every column.")


def _print_families(console: Console, table: Table) -> None:
    """Print a table, with the columns in `ASIDE` as one line so that it fits 80 columns."""
    names = [one.title for one in table.columns]
    kept = [at for at, name in enumerate(names) if name not in ASIDE]
    rows = [[row[at] for at in kept] for row in table.rows]
    print_table(console, table.caption, [names[at] for at in kept], rows)
    aside = [f"{name} {table.rows[-1][at]}" for at, name in enumerate(names) if name in ASIDE]
    if aside:
        print_line(console, f"among all of these: {', '.join(aside)}")
