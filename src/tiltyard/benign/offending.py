"""Find the argument of a stopped call that the guardrail objects to."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import structs

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.benign.trial import Trial, play
from tiltyard.contracts.agent import View
from tiltyard.contracts.decision import Action
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.contracts.trace import Answer
from tiltyard.world.results import ToolCall
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import World
from tiltyard.world.text import Text, by_machine

MAX_VALUES_TRIED: Final = 3

Allowed = Mapping[tuple[str, str], tuple[str, ...]]
"""Values that the guardrail allowed, by tool and argument."""


def allowed_values(trials: Iterable[Trial]) -> Allowed:
    """Return the values of all arguments in calls that the guardrail allowed."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for trial in trials:
        for event in trial.trace.events:
            if event.decision.action is Action.ALLOW:
                for name, value in event.call.args.items():
                    if isinstance(value, Text):
                        found.setdefault((event.call.tool, name), {})[value.string] = None
    return {place: tuple(values) for place, values in found.items()}


def offending_arguments(
    trial: Trial,
    place: Scenario | World,
    make_guardrail: MakeGuardrail,
    allowed: Allowed,
) -> tuple[str, ...]:
    """Return the arguments of a trial's stopped call that the guardrail objects to.

    Play the task again and change one argument of that call: make it empty, or give it a value that
    the guardrail allowed elsewhere. If the guardrail then allows the call, it objects to the
    argument. If no change helps, return the arguments that the guardrail's reason quotes.
    """
    if trial.stop is None or trial.stop.index < 0:
        return ()
    at = trial.stop.index
    call = trial.trace.events[at].call
    found: list[str] = []
    for name, value in call.args.items():
        if not isinstance(value, Text):
            continue
        for other in _others(value.string, allowed.get((call.tool, name), ())):
            agent = _ChangedCall(at, name, other)
            events = play(trial.task, place, make_guardrail, agent).trace.events
            if len(events) > at and events[at].decision.action is Action.ALLOW:
                found.append(name)
                break
    return tuple(found) or tuple(_quoted(call, trial.stop.reason))


def _quoted(call: ToolCall, reason: str) -> Iterator[str]:
    for name, value in call.args.items():
        if isinstance(value, Text) and len(value.string) > 1 and value.string in reason:
            yield name


def _others(value: str, allowed: Iterable[str]) -> Iterator[str]:
    yield from islice((other for other in ("", *allowed) if other != value), MAX_VALUES_TRIED)


class _ChangedCall:
    """The deterministic agent, with another argument in one call, after which it stops."""

    name = DeterministicAgent.name
    traits = DeterministicAgent.traits

    def __init__(self, at: int, argument: str, value: str) -> None:
        self._agent = DeterministicAgent()
        self._at = at
        self._argument = argument
        self._value = value

    def begin(self) -> Any:
        return self._agent.begin()

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Any]:
        made = view.trace.event_count
        if made > self._at:
            return Answer(""), view.memory
        action, memory = self._agent.next_action(view)
        if made == self._at and isinstance(action, ToolCall):
            args = {**action.args, self._argument: by_machine(self._value)}
            action = structs.replace(action, args=args)
        return action, memory
