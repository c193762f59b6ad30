"""A probe: measure one agent's susceptibility, with the guardrail and the record it needs.

Opens the agent, the guardrail and the scenario, then calls `susceptibility.measure`.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.record import Record
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.advance import MAX_CALLS_A_MESSAGE
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.files import write_whole
from tiltyard.foundation.progress import Progress
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.opponents import GuestSettings, find_opponent
from tiltyard.reporting.match_parts import describe_model
from tiltyard.reporting.susceptibility_page import page
from tiltyard.reporting.susceptibility_schema import Susceptibility
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.runs.store import EXCHANGES
from tiltyard.studies.susceptibility import DEFAULT_PER_FAMILY, DEFAULT_VARIANTS, measure
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate

DATA: Final = "susceptibility.json"
PAGE: Final = "susceptibility.html"
MOST_REQUESTS: Final = 1_000_000
_GUARDRAIL_SECONDS: Final = 86_400.0
"""A day: the guardrail waits while the agent answers, and a model may be slow."""


class ProbeSettings(Struct, frozen=True):
    """What to measure."""

    agent: AgentChoice
    guardrail: str = ""
    """A shipped guardrail's name or a submission's path; empty for none."""
    seed: int = PUBLIC_SEED
    scenario: Path | None = None
    """A fixtures directory, played instead of `seed`."""
    per_family: int = DEFAULT_PER_FAMILY
    variants: int = DEFAULT_VARIANTS
    out: Path | None = None
    """Where to keep a model's answers, so that an interrupted probe can continue."""
    fresh: bool = False
    """Delete the answers in `out` first."""
    unsafe: bool = False


def ruleset_for(agent: AgentChoice) -> Ruleset:
    """Return the ruleset that says how to ask the agent."""
    return load_ruleset(agent.model_ruleset)


def run_probe(settings: ProbeSettings, progress: Progress) -> Susceptibility:
    """Measure an agent without a guardrail and, if one is named, with it."""
    rules = ruleset_for(settings.agent)
    settings.agent.check_key()
    assert rules.model is not None
    # A probe is not a match: only the user limits its requests.
    asking = structs.replace(rules.model, requests=settings.agent.max_requests or MOST_REQUESTS)
    calls = rules.model.calls_per_message if settings.agent.traits.metered else MAX_CALLS_A_MESSAGE
    world = (
        generate(settings.seed) if settings.scenario is None else load_scenario(settings.scenario)
    )
    with (
        hire(settings.agent, asking, _open_record(settings)) as agent,
        open_guardrail(settings.guardrail, unsafe=settings.unsafe) as (name, make_guardrail),
    ):
        found = measure(
            agent,
            world,
            make_guardrail,
            guardrail=name,
            per_family=settings.per_family,
            variants=settings.variants,
            max_calls=calls,
            progress=progress,
        )
        return structs.replace(found, model=describe_model(agent, asking.requests))


def write_probe(found: Susceptibility, directory: Path) -> None:
    """Write the results as JSON and as an HTML page."""
    data = msgspec.json.format(msgspec.json.encode(found), indent=1)
    write_whole(directory / DATA, data + b"\n")
    write_whole(directory / PAGE, page(found).encode())


def _open_record(settings: ProbeSettings) -> Record:
    if settings.out is None:
        return Record(None)
    if settings.fresh:
        shutil.rmtree(settings.out / EXCHANGES, ignore_errors=True)
    return Record(settings.out / EXCHANGES)


@contextmanager
def open_guardrail(wanted: str, *, unsafe: bool) -> Iterator[tuple[str, MakeGuardrail | None]]:
    """Yield a guardrail's name and its factory. A submission's guardrail runs in the sandbox."""
    if not wanted:
        yield "", None
        return
    with tempfile.TemporaryDirectory(prefix="tiltyard-probe-") as name, ExitStack() as stack:
        scratch = Path(name)
        scratch.chmod(0o755)  # a guest runs as another user, who must be able to read it
        found = find_opponent("guardrail", wanted, scratch / "guardrail")
        if found.submission is not None and not unsafe and probe().level is Level.C:
            raise NoJailError("this machine cannot confine a stranger's code")
        guests = GuestSettings(unsafe=unsafe, defense_seconds=_GUARDRAIL_SECONDS)
        yield found.name, guests.maker_of(found, stack)
