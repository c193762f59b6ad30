"""The trace: what happened in an episode, event by event.

Traces share their prefixes, have a canonical JSON form and a digest. The judge reads whole events,
with labels, causes and effects. Attacks, guardrails and reports read the public view without them.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from tiltyard.contracts.decision import Action, Decision
from tiltyard.world.results import ToolCall, ToolResult
from tiltyard.world.state import Effect, Posted
from tiltyard.world.text import SourceKind
from tiltyard.world.tools import TOOLS

TRACE_VERSION: Final = 1


class Event(Struct, frozen=True, gc=False):
    """One call: the agent proposed it, the guardrail decided, and the tool ran or did not."""

    index: int
    """The number of the event in the episode, from 0."""
    turn: int
    """The number of the user's message, from 0."""
    call: ToolCall
    """The call as the agent proposed it, with labels."""
    decision: Decision
    result: ToolResult
    effects: tuple[Effect, ...] = ()
    """The changes in the world."""
    ran: ToolCall | None = None
    """The call that ran instead, if the guardrail sanitized it."""
    observe_error: str = ""
    """The error in the guardrail's `observe`, if there was one."""


class Answer(Struct, frozen=True, gc=False):
    """The answer with which the agent ends its turn."""

    text: str


class PublicEvent(Struct, frozen=True, gc=False):
    """An event without the parts that only the judge sees: labels, causes and effects."""

    index: int
    turn: int
    name: str
    args: dict[str, Any]
    """Text, numbers and None; in a conversation over declared tools any JSON values."""
    ok: bool
    output: str
    error: str | None
    source: str
    side_effect: str
    scope: str
    decision: Action
    reason: str
    observe_error: str = ""
    """The error in the guardrail's `observe`, if there was one."""

    def keys(self) -> tuple[str, ...]:
        return self.__struct_fields__

    def __getitem__(self, key: str) -> Any:
        """Read the event as a mapping, as older guardrails and attacks do."""
        if key in self.__struct_fields__:
            return getattr(self, key)
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key) if key in self.__struct_fields__ else default


class TraceError(ValueError):
    """The bytes are not a trace."""


class Folded(Protocol):
    """A folded history: it computes the trace again on demand."""

    def unfold(self) -> "Trace": ...


class Trace(Struct, frozen=True, eq=False, gc=False):
    """A history: its last turn, and a reference to the history before that turn."""

    parent: "Trace | Folded | None" = None
    """The history before this turn. A folded history includes this turn, which is then empty."""
    message: str = ""
    turn_events: tuple[Event, ...] = ()
    """The events of the last turn; `events` has those of the whole history."""
    answer: Answer | None = None
    """None until the turn ends."""
    turns: int = 0
    event_count: int = 0
    steps: int = 0
    """The cost: one step for each call, and one for a message without calls."""
    is_folded: bool = False
    """True if a part of the history is folded."""

    def unfolded(self) -> "Trace":
        """Return the same history with all folded parts computed."""
        if not self.is_folded:
            return self
        later: list[Trace] = []
        node = self
        while isinstance(node.parent, Trace):
            later.append(node)
            node = node.parent
        assert node.parent is not None
        trace = node.parent.unfold()
        for turn in reversed(later):
            trace = OpenTurn(trace, turn.message, [*turn.turn_events]).closed(turn.answer)
        return trace

    def backwards(self) -> Iterator["Trace"]:
        """Yield the history turn by turn, from the last to the first."""
        node = self.unfolded()
        while isinstance(node.parent, Trace):
            yield node
            node = node.parent

    def all_turns(self) -> "list[Trace]":
        found = list(self.backwards())
        found.reverse()
        return found

    @property
    def events(self) -> list[Event]:
        return [event for turn in self.all_turns() for event in turn.turn_events]

    @property
    def user_messages(self) -> list[str]:
        return [turn.message for turn in self.all_turns()]

    @property
    def answers(self) -> list[str]:
        return [turn.answer.text for turn in self.all_turns() if turn.answer is not None]

    def last_events(self, count: int) -> list[Event]:
        """Return the newest `count` events, oldest first. Costs nothing for older events."""
        found: list[Event] = []
        for turn in self.backwards():
            if len(found) >= count:
                break
            found.extend(reversed(turn.turn_events))
        del found[count:]
        found.reverse()
        return found

    def public_events(self) -> list[PublicEvent]:
        return [public(event) for event in self.events]

    def to_json(self) -> bytes:
        """Return the canonical form: equal traces give equal bytes on every machine."""
        return _ENCODER.encode(_Document(TRACE_VERSION, _turns(self)))

    @staticmethod
    def from_json(data: bytes) -> "Trace":
        """Read a canonical form. `to_json()` of the result returns the same bytes."""
        try:
            document = _DECODER.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"not a trace: {error}") from None
        if document.version != TRACE_VERSION:
            raise TraceError(f"the trace has version {document.version}; expected {TRACE_VERSION}")
        trace = NO_TRACE
        for turn in document.turns:
            trace = OpenTurn(trace, turn.message, [*turn.events]).closed(turn.answer)
        return trace

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the canonical form."""
        return sha256(self.to_json()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return self is other or _turns(self) == _turns(other)

    def __hash__(self) -> int:
        return hash((self.turns, self.event_count, self.steps))

    def __iter__(self) -> Iterator[PublicEvent]:
        return iter(self.public_events())

    def __repr__(self) -> str:
        return f"<Trace: {self.turns} turns, {self.event_count} events, {self.steps} steps>"


NO_TRACE: Final = Trace()


class OpenTurn(Struct, gc=False):
    """The current turn: the history before it, and its events so far."""

    before: Trace
    message: str
    events: list[Event]

    @property
    def trace(self) -> Trace:
        """The history with the current turn so far."""
        if self.before.is_folded:
            self.before = self.before.unfolded()
        return self.closed(None)

    # What `tiltyard.contracts.guardrail.Past` asks for.

    @property
    def user_messages(self) -> list[str]:
        return self.trace.user_messages

    def public_events(self) -> list[PublicEvent]:
        return self.trace.public_events()

    def last_sources(self, count: int) -> list[str]:
        return [event.result.source.value for event in self.trace.last_events(count)]

    def last_tools(self, count: int) -> list[str]:
        return [event.call.tool for event in self.trace.last_events(count)]

    def closed(self, answer: Answer | None) -> Trace:
        """End the turn with an answer, and return the whole history."""
        before, calls = self.before, len(self.events)
        return Trace(
            before,
            self.message,
            tuple(self.events),
            answer,
            before.turns + 1,
            before.event_count + calls,
            before.steps + (calls or 1),
            before.is_folded,
        )


def public(event: Event) -> PublicEvent:
    """Return the public view of an event."""
    call, result = event.ran or event.call, event.result
    side_effect, scope = _KINDS.get(call.tool, ("", ""))
    return PublicEvent(
        event.index,
        event.turn,
        call.tool,
        call.plain_args(),
        result.ok,
        result.output.string,
        None if result.error is None else result.error.value,
        _SOURCES[result.source],
        side_effect,
        scope,
        event.decision.action,
        event.decision.reason,
        event.observe_error,
    )


_KINDS: Final = {name: (tool.side_effect.value, tool.scope.value) for name, tool in TOOLS.items()}
_SOURCES: Final = {source: source.value for source in SourceKind}


def export(trace: Trace, seed: int) -> dict[str, Any]:
    """Return the public view of a whole trace as plain data."""
    return {
        "seed": seed,
        "user_messages": trace.user_messages,
        "assistant_messages": trace.answers,
        "tool_events": [msgspec.to_builtins(event) for event in trace.public_events()],
        "egress": [
            {"url": effect.url.string, "data": effect.data.string}
            for event in trace.events
            for effect in event.effects
            if isinstance(effect, Posted)
        ],
    }


class _Turn(Struct, frozen=True):
    message: str
    events: tuple[Event, ...]
    answer: Answer | None


class _Document(Struct, frozen=True):
    version: int
    turns: list[_Turn]


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final = msgspec.json.Decoder(_Document)


def _turns(trace: Trace) -> list[_Turn]:
    return [_Turn(turn.message, turn.turn_events, turn.answer) for turn in trace.all_turns()]
