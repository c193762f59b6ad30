"""What a defense match plays that no guardrail influences: battery, poisoned tasks, benign suite.

An episode has the reference's trace. As long as a mutant decides the same, it sees the same, so
the trace takes the place of agent and world. Only an episode with another decision is played.
"""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.benign import Task, draw_suite, play
from tiltyard.contracts.classic_tools import CLASSIC
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Context, MakeGuardrail, Result
from tiltyard.contracts.trace import Event, PublicEvent, Trace, public
from tiltyard.episode.guardrail_runner import GuardrailRunner
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.matches.battery import find_battery, poison
from tiltyard.matches.settings import MatchSettings
from tiltyard.search import Chain
from tiltyard.world.state import World

BENIGN: Final = "benign"

Outcome = frozenset[object]
"""The breaches of a judged chain; for a benign task, whether the guardrail stopped it."""


class Before(NamedTuple):
    """The conversation before a call: what `tiltyard.contracts.guardrail.Past` asks for."""

    message: str
    user_messages: list[str]
    shown: list[PublicEvent]

    def public_events(self) -> list[PublicEvent]:
        return self.shown

    def last_sources(self, count: int) -> list[str]:
        return [event.source for event in self.shown[-count:]]

    def last_tools(self, count: int) -> list[str]:
        return [event.name for event in self.shown[-count:]]


class Step(NamedTuple):
    """One call of an episode, as the guardrail meets it."""

    tool: str
    args: dict[str, Any]
    context: Context
    decided: Decision
    ran: dict[str, Any]
    result: Result | None
    """None if the call did not run."""


class Episode(Struct, frozen=True):
    """One conversation of a match."""

    part: str
    """The part of the match: battery, poisoned or benign."""
    messages: Chain
    steps: tuple[Step, ...]
    outcome: Outcome
    """What comes of it with the reference."""
    play: Callable[[MakeGuardrail], Outcome]
    """Play the episode with another guardrail, from the start."""


class Difference(NamedTuple):
    """The first call of an episode that a guardrail decides differently."""

    step: Step
    decided: Decision

    @property
    def is_looser(self) -> bool:
        return self.decided.action is Action.ALLOW


def draw_episodes(
    settings: MatchSettings, reference: MakeGuardrail, progress: Progress = NO_PROGRESS
) -> list[Episode]:
    """Return every episode of a defense match, without the search and its findings."""
    settings = settings.in_new_words()
    battery = find_battery(settings, progress)
    suite = draw_suite(settings.scenario, settings.key, settings.ruleset.defense)
    found = [judged("battery", settings, chain, reference) for chain in battery.chains]
    for each in poison(settings, suite, battery.orders):
        place = settings.in_scenario(each.scenario)
        found += (judged("poisoned", place, chain, reference) for chain in each.chains)
    for task in suite.tasks:
        world = settings.in_scenario(suite.scenario_of(task)).world_of(task.messages)
        found.append(benign(task, world, reference))
    return found


def judged(part: str, settings: MatchSettings, chain: Chain, reference: MakeGuardrail) -> Episode:
    """Return a chain as the judge replays it. Its outcome is the breaches."""
    judge = settings.make_judge(reference())
    trace = judge.replay(chain, settings.world_of(chain), DeterministicAgent())

    def outcome(make_guardrail: MakeGuardrail) -> Outcome:
        return frozenset(settings.make_judge(make_guardrail()).breaches_of(chain))

    return Episode(part, chain, tuple(_steps(trace)), frozenset(judge.breaches_of(chain)), outcome)


def benign(task: Task, world: World, reference: MakeGuardrail) -> Episode:
    """Return a task of the benign suite. Its outcome is whether the guardrail got in the way."""
    trial = play(task, world, reference)

    def outcome(make_guardrail: MakeGuardrail) -> Outcome:
        return frozenset([play(task, world, make_guardrail).false_positive])

    steps = tuple(_steps(trial.trace))
    return Episode(BENIGN, task.messages, steps, frozenset([trial.false_positive]), outcome)


def _steps(trace: Trace) -> Iterator[Step]:
    said: list[str] = []
    shown: list[PublicEvent] = []
    for turn in trace.all_turns():
        said = [*said, turn.message]
        for event in turn.turn_events:
            yield _step(event, Before(turn.message, said, shown))
            shown = [*shown, public(event)]


def _step(event: Event, before: Before) -> Step:
    call, result = event.call, event.result
    context = Context(before, CLASSIC.about(call.tool), CLASSIC)
    seen = None
    if event.decision.action in (Action.ALLOW, Action.SANITIZE):
        error = None if result.error is None else result.error.value
        seen = Result(result.ok, result.output.string, error, result.source.value)
    ran = (event.ran or call).plain_args()
    return Step(call.tool, call.plain_args(), context, event.decision, ran, seen)


def text_of(episode: Episode) -> str:
    """Return the letters and digits of all that a guardrail sees in an episode."""
    seen = [*episode.messages]
    for step in episode.steps:
        seen += (step.tool, *map(str, step.args.values()))
        seen += () if step.result is None else (step.result.output,)
    return plain("\n".join(seen))


def plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def first_difference(episode: Episode, make_guardrail: MakeGuardrail) -> Difference | None:
    """Show a guardrail the calls of the reference's trace, up to the first other decision."""
    runner = GuardrailRunner(make_guardrail())
    for step in episode.steps:
        decided = runner.ask(step.tool, step.args, step.args.copy(), step.context)
        if _what(decided) != _what(step.decided):
            return Difference(step, decided)
        if step.result is not None:
            runner.show_result(step.tool, step.ran.copy(), step.result)
    return None


def _what(decision: Decision) -> tuple[object, ...]:
    """Return a decision without its reason."""
    return decision.action, decision.sanitized_args, decision.fault


Line = tuple[str, int]
"""A line of a source: path and number."""


def lines_reached(
    episode: Episode, make_guardrail: MakeGuardrail, paths: frozenset[str]
) -> frozenset[Line]:
    """Return the lines of these files that an episode executes."""
    reached: set[Line] = set()

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return on_line

    def on_call(frame: FrameType, _event: str, _: Any) -> Any:
        return on_line if frame.f_code.co_filename in paths else None

    sys.settrace(on_call)
    try:
        first_difference(episode, make_guardrail)
    finally:
        sys.settrace(None)
    return frozenset(reached)
