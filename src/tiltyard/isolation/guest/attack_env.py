"""An attack's environment inside the jail: every call goes over the wire to the judge."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from tiltyard.contracts.attack import BudgetSpentError
from tiltyard.contracts.decision import Action
from tiltyard.contracts.trace import PublicEvent
from tiltyard.isolation.guest import virtual_clock
from tiltyard.isolation.guest.errors import ResultError
from tiltyard.isolation.guest.exported import Exported
from tiltyard.isolation.wire.channel import Channel, MalformedError
from tiltyard.isolation.wire.frames import (
    MAX_MOVES,
    MAX_SNAPSHOTS,
    RESET,
    SNAPSHOT,
    EnvCall,
    EnvReply,
    RunAttack,
)

MAX_CANDIDATES_SENT: Final = 20_000
MAX_PART_CHARS: Final = 150_000


class GuestInteraction(Struct, frozen=True):
    """The answer to one message, and the tool calls it led to."""

    seed: int
    answer: str
    events: list[PublicEvent]
    total_tool_events: int

    @property
    def steps(self) -> int:
        return max(1, len(self.events))

    @property
    def tool_events_added(self) -> int:
        return len(self.events)

    @property
    def successful_tool_calls(self) -> int:
        return sum(event.ok for event in self.events)

    @property
    def failed_tool_calls(self) -> int:
        return len(self.events) - self.successful_tool_calls

    @property
    def agent_refused(self) -> bool:
        return not self.events


class GuestTurn(Struct, frozen=True, eq=False):
    """One turn, and a link to the turn before it."""

    parent: "GuestTurn | None"
    number: int
    """The number of the turn, from 1."""
    message: str
    answer: str
    events: tuple[PublicEvent, ...]
    egress: tuple[tuple[str, str], ...]

    def turns(self) -> "list[GuestTurn]":
        found: list[GuestTurn] = []
        node: GuestTurn | None = self
        while node is not None:
            found.append(node)
            node = node.parent
        return found[::-1]


class GuestSnapshot(Struct, frozen=True, eq=False):
    """A state to restore. The judge keeps the state itself, under `number`."""

    number: int
    last: GuestTurn | None


class GuestTrace:
    """The public view of the trace."""

    def __init__(self, last: GuestTurn | None) -> None:
        self._last = last

    @cached_property
    def _turns(self) -> list[GuestTurn]:
        return [] if self._last is None else self._last.turns()

    def public_events(self) -> list[PublicEvent]:
        return [event for turn in self._turns for event in turn.events]

    @property
    def user_messages(self) -> list[str]:
        return [turn.message for turn in self._turns]

    @property
    def answers(self) -> list[str]:
        return [turn.answer for turn in self._turns]

    def __iter__(self) -> Iterator[PublicEvent]:
        return iter(self.public_events())


class GuestEnv:
    """The part of `SandboxEnv` that an attack can use.

    Resets, restores and snapshots travel with the next message.
    """

    def __init__(self, wire: Channel[Any], run: RunAttack, clock: virtual_clock.Clock) -> None:
        self._wire = wire
        self._clock = clock
        self._steps = run.max_steps
        self._last: GuestTurn | None = None
        self._moves: list[int] = []
        """What the judge does not know yet."""
        self._snapshots = 0
        self._full = ""
        """Why the judge would refuse a snapshot."""
        self._exported = Exported()
        self.seed = run.seed
        self.max_tool_hops = run.max_tool_hops
        self.steps_left: int | None = run.max_steps
        # Rounded up: the time must be over after the last step, for attacks that read the clock.
        clock.step_nanoseconds = -(-int(run.time_budget_s * 1e9) // max(1, run.max_steps))

    def _call(self, call: EnvCall) -> EnvReply:
        self._moves = []
        self._wire.send(call)
        reply = self._wire.receive()
        if not isinstance(reply, EnvReply):
            raise MalformedError(f"expected EnvReply, not {type(reply).__name__}")
        self.steps_left = reply.steps_left
        self._full = reply.full
        if reply.steps_left is not None:
            self._clock.at_step(self._steps - reply.steps_left)
        if reply.budget_spent:
            raise BudgetSpentError("no steps are left: return the candidates that you have")
        if reply.error:
            raise ValueError(reply.error)
        return reply

    def reset(self) -> None:
        self._move(RESET)
        self._full = ""
        self._last = None

    def _move(self, move: int) -> None:
        if len(self._moves) >= MAX_MOVES:
            self._call(EnvCall("move", moves=self._moves))
        self._moves.append(move)

    def interact(self, message: str, max_tool_hops: int | None = None) -> GuestInteraction:
        if not isinstance(message, str):
            raise TypeError(f"a message is a string, not {type(message).__name__}")
        if not _is_unicode(message):
            raise ValueError("a message must be valid Unicode; this one has a lone surrogate")
        reply = self._call(EnvCall("interact", message, max_tool_hops or 0, self._moves))
        fields = [*reply.events]
        rest = reply
        while rest.more:
            rest = self._call(EnvCall("more"))
            fields += rest.events
        events = [_event(each) for each in fields]
        before = self._last
        self._last = GuestTurn(
            before,
            1 if before is None else before.number + 1,
            message,
            reply.answer,
            tuple(events),
            tuple(reply.egress),
        )
        return GuestInteraction(self.seed, reply.answer, events, reply.number)

    def snapshot(self) -> GuestSnapshot:
        if self._full:
            raise ValueError(self._full)
        if self._snapshots >= MAX_SNAPSHOTS:
            raise ValueError(f"more than {MAX_SNAPSHOTS:,} snapshots")
        self._move(SNAPSHOT)
        self._snapshots += 1
        return GuestSnapshot(self._snapshots - 1, self._last)

    def restore(self, snapshot: GuestSnapshot) -> None:
        if not isinstance(snapshot, GuestSnapshot):
            raise TypeError("restore takes what snapshot() returned")
        self._move(snapshot.number)
        self._full = ""
        self._last = snapshot.last

    @property
    def trace(self) -> GuestTrace:
        return GuestTrace(self._last)

    def export_trace_dict(self) -> dict[str, Any]:
        return self._exported.export(self._last, self.seed)

    def export_events_with(self, convert: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Let `export_trace_dict` convert every event with this function."""
        self._exported.drop()
        self._exported.convert = convert


def _event(fields: list[Any]) -> PublicEvent:
    index, turn, name, args, ok, output, error, source, effect, scope, decision, *rest = fields
    return PublicEvent(
        index, turn, name, args, ok, output, error, source, effect, scope, Action(decision), *rest
    )


def plain_candidates(found: Any) -> Iterator[list[Any]]:
    """Yield an attack's candidates as plain data, in parts that fit into a frame.

    An item that is not a candidate is sent in a form that the judge refuses. So the refusal names
    the item's index.
    """
    if not isinstance(found, Iterable):
        raise ResultError(f"`run` returned {type(found).__name__}, not a list of candidates")
    part: list[Any] = []
    chars = 0
    for candidate in islice(iter(found), MAX_CANDIDATES_SENT):
        plain, size = _plain(candidate)
        if part and chars + size > MAX_PART_CHARS:
            yield part
            part, chars = [], 0
        part.append(plain)
        chars += size
    yield part


def _plain(candidate: Any) -> tuple[Any, int]:
    messages = getattr(candidate, "user_messages", candidate)
    if not isinstance(messages, tuple | list):
        return type(messages).__name__, 100
    plain = [m if isinstance(m, str) and _is_unicode(m) else None for m in messages]
    size = 100 + sum(len(m or "") + 10 for m in plain)
    return ("too large to be sent", 100) if size > MAX_PART_CHARS else (plain, size)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
