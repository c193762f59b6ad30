"""`tiltyard probe`: how easily strangers move an agent, and how far a guardrail helps."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from msgspec import structs
from rich.console import Console

from tiltyard.agents.choice import LOCAL, hire
from tiltyard.agents.model.record import Record
from tiltyard.cli.agents import (
    BaseUrlOption,
    MaxCostOption,
    MaxRequestsOption,
    PriceOption,
    check_agent,
    choose_agent,
)
from tiltyard.cli.bars import Bars
from tiltyard.cli.evaluate import BROKEN_OFF, ScenarioOption
from tiltyard.cli.problems import in_one_sentence, refuse
from tiltyard.cli.screen import UnsafeOption, open_console
from tiltyard.cli.showing import print_table, say
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.advance import MAX_CALLS_A_MESSAGE
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.files import write_whole
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.opponents import GuestSettings, Opponent, find_opponent
from tiltyard.reporting.match_parts import describe_model
from tiltyard.reporting.page import Table
from tiltyard.reporting.susceptibility_page import (
    ASIDE,
    family_tables,
    page,
    setting,
    task_tables,
    warnings,
)
from tiltyard.reporting.susceptibility_schema import Susceptibility
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.runs.store import EXCHANGES
from tiltyard.studies.susceptibility import (
    DEFAULT_PER_FAMILY,
    DEFAULT_VARIANTS,
    BrokenOffError,
    measure,
)
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate

DATA: Final = "susceptibility.json"
PAGE: Final = "susceptibility.html"
MOST_REQUESTS: Final = 1_000_000
_A_DAY: Final = 86_400.0
"""A guest waits for an agent that may be slow; it is the agent's time, not the guest's."""


def run(
    *,
    agent: Annotated[
        str,
        typer.Option(
            help="Who is tried: deterministic, openai:MODEL (key in OPENAI_API_KEY) or local."
        ),
    ] = "deterministic",
    base_url: BaseUrlOption = "",
    max_requests: MaxRequestsOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = "",
    guardrail: Annotated[
        str, typer.Option(help="Try it past this one as well: a rung's name, or a submission.")
    ] = "",
    seed: Annotated[int, typer.Option(help="The scenario's seed.")] = PUBLIC_SEED,
    scenario: ScenarioOption = None,
    per_family: Annotated[
        int, typer.Option(help="Play so many documents of each family, at most.", min=1)
    ] = DEFAULT_PER_FAMILY,
    variants: Annotated[
        int, typer.Option(help="Play so many tasks of each benign operation.", min=0)
    ] = DEFAULT_VARIANTS,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Write {DATA} and {PAGE} into this directory. What a model answers is kept there "
            "too, and not asked again."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask a model again what it answered before.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Measure how easily strangers' words move an agent, without a guardrail and with one.

    Leads the agent to documents with injections in them, family by family, and counts which it
    followed, which the guardrail stopped, which it refused and which it ignored. Then plays the
    benign tasks. Every share has its 95% interval.

    Exit codes: 0 it was measured, 1 the agent or the guardrail broke down, 2 something about the
    command is wrong, 3 no jail on this machine, 130 interrupted.

    For example `tiltyard probe --guardrail "data flow" --per-family 5 --out probe`, and with a
    model of your own `tiltyard probe --agent openai:my-model --base-url http://127.0.0.1:8000/v1
    --guardrail guardrail.py --out probe`.
    """
    goes_on = "; the same command goes on from here" if out is not None else ""
    with in_one_sentence(f"interrupted{goes_on}"):
        choice = choose_agent(agent, base_url, max_requests, max_cost, price)
        rules = load_ruleset("demo-llm" if choice.name == LOCAL else "design-openai")
        check_agent(choice, rules)
        choice.check_key()
        assert rules.model is not None
        # No budget but the user's own: a probe is not a match.
        asking = structs.replace(rules.model, requests=choice.max_requests or MOST_REQUESTS)
        if fresh and out is not None:
            shutil.rmtree(out / EXCHANGES, ignore_errors=True)
        record = Record(None if out is None else out / EXCHANGES)
        calls = rules.model.calls_per_message if choice.traits.metered else MAX_CALLS_A_MESSAGE
        world = generate(seed) if scenario is None else load_scenario(scenario)
        try:
            with (
                hire(choice, asking, record) as tried,
                _opened(guardrail, unsafe=unsafe) as (name, make),
                Bars() as bars,
            ):
                found = measure(
                    tried,
                    world,
                    make,
                    guardrail=name,
                    per_family=per_family,
                    variants=variants,
                    max_calls=calls,
                    progress=bars,
                )
                used = describe_model(tried, asking.requests)
                found = structs.replace(found, model=used)
        except (BrokenOffError, AgentGoneError) as error:
            refuse(f"{error}{goes_on}", BROKEN_OFF)
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
        guests = GuestSettings(unsafe=unsafe, defense_seconds=_A_DAY)
        yield found.name, guests.maker_of(found, stack)


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
    for sentence in warnings(found):
        say(console, sentence)
    say(console, "What the words mean: `tiltyard probe --out DIR` says so on its page.")
