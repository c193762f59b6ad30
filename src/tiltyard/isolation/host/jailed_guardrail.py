"""A guardrail in the jail, from the judge's side.

The guest keeps the guardrail's states, and the judge holds handles to them. If the guest has
dropped a state, the judge sends the history again from the trace; so a restored state equals the
replayed one. Events since the last decision travel with the next request, in one frame.

The runner caches decisions by everything that the guardrail saw before. A search that
returns to a state by replaying it would ask a third of its questions twice.
"""

import mmap
import os
from collections.abc import Callable
from hashlib import blake2b
from itertools import takewhile
from typing import Any, Final

import msgspec

from tiltyard.contracts.decision import ALLOWED, Action, Decision, Fault
from tiltyard.contracts.trace import NO_TRACE, Event, OpenTurn, Trace
from tiltyard.episode.guardrail_caller import normalize_reason
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.isolation.host import failures
from tiltyard.isolation.host.failures import Failure, GuardrailFault, GuestError, Phase
from tiltyard.isolation.host.session import Session
from tiltyard.isolation.wire.frames import (
    Begin,
    CallDecided,
    Close,
    Commit,
    Decide,
    Decided,
    Enter,
    Forget,
    Forgotten,
    Note,
    Noted,
    Plain,
    Redo,
    Seen,
)
from tiltyard.world.results import ToolCall, ToolError, ToolResult

MAX_NOTES_CHARS: Final = 150_000
"""The limit for one frame. A character takes up to four bytes; the call's arguments are extra."""
MAX_FAULTS_KEPT: Final = 20
FORGOTTEN_AT_ONCE: Final = 32
SHARED_FAILURE_BYTES: Final = 1 << 17
"""Room for one packed `Failure`."""
MAX_CACHED: Final = 200_000
_NOT_RUN: Final = (ToolError.DENIED, ToolError.NOT_CONFIRMED, ToolError.GUARDRAIL_ERROR)


class Kept:
    """A state that a guest keeps until this object is collected."""

    __slots__ = ("dead", "number", "turns")

    def __init__(self, number: int, turns: int, dead: list[int]) -> None:
        self.number = number
        self.turns = turns
        """How many turns of the trace precede the state."""
        self.dead = dead
        """The numbers of collected states of the same guest."""

    def __del__(self) -> None:
        self.dead.append(self.number)


class Handle:
    """A moment in an episode, between two turns."""

    __slots__ = ("history", "kept", "turns")

    def __init__(self, history: Any, turns: int, kept: Kept) -> None:
        self.history = history
        """Everything that the guardrail saw: a digest up to the last decision, and the events
        after it."""
        self.turns = turns
        self.kept = kept
        """The nearest earlier state that a guest keeps."""


class JailedGuardrail(RemoteGuardrail):
    """A submission's guardrail. Use it like any other guardrail."""

    runner: "JailedRunner"

    def __init__(self, open_session: Callable[[], Session]) -> None:
        super().__init__(JailedRunner(open_session))

    def start(self) -> None:
        """Start the guest now, and not with the first call. Raise if it does not load."""
        self.runner.start()

    def keep_episodes_apart(self) -> None:
        self.runner.apart = True

    def failure(self) -> GuestError | None:
        failure = self.runner.failure.read()
        return None if failure is None else GuestError(failure)

    def close(self) -> None:
        self.runner.close()


class SharedFailure:
    """The failure of a guest, in memory that forked workers share."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, SHARED_FAILURE_BYTES)

    def write(self, failure: Failure) -> None:
        packed = failures.pack(failure)
        self._page.seek(0)
        self._page.write(len(packed).to_bytes(4, "big") + packed)

    def read(self) -> Failure | None:
        size = int.from_bytes(self._page[:4], "big")
        return failures.unpack(self._page[4 : 4 + size]) if size else None


class JailedRunner:
    """Moves the guardrail in a guest from state to state."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._dead: list[int] = []
        self._beginning = Kept(0, 0, [])
        """State 0, which every guest has."""
        self.initial = Handle(b"", 0, self._beginning)
        self.apart = False
        """True: a guest plays one episode only."""
        self._open = open_session
        self._session: Session | None = None
        self._process = 0
        self._notes: list[Note] = []
        self._state = self.initial
        self._history: Any = b""
        self._turn: OpenTurn | None = None
        """The current turn, after its first decision."""
        self._digested = 0
        """How many events of the turn are in the history."""
        self._sent: int | None = None
        """How many events of the turn the guest knows; None if it does not know the turn yet."""
        self._last = 0
        self._cache: dict[bytes, Decision] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self.failure = SharedFailure()
        self._faults: list[GuardrailFault] = []

    def enter(self, state: Handle) -> None:
        if self.apart and state is self.initial:
            self.close()
        self._state = state
        self._turn = None

    def show(self, state: Handle) -> None:
        """Do nothing: the guardrail is not in this process."""

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        args = call.plain_args()
        news = self._news(turn)
        asked = self._encoder.encode((self._history, news, call.tool, args))
        self._history = blake2b(asked, digest_size=16).digest()
        if self._sent is None and not self.apart:
            known = self._cache.get(self._history)
            if known is not None:
                return known
        try:
            decision = self._ask(self._reach(), turn, call.tool, args, news)
        except GuestError as error:
            self.failure.write(error.failure)
            raise
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[self._history] = decision
        return decision

    def _news(self, turn: OpenTurn) -> list[Seen]:
        """Return the events since the last call of this method."""
        if self._turn is not turn:
            self._turn, self._sent, self._digested = turn, None, 0
            # The handle does not contain turns without a call.
            messages = [closed.message for closed in _turns_after(turn.before, self._state.turns)]
            self._history = self._state.history, messages, turn.message
        news = [_seen(event) for event in turn.events[self._digested :]]
        self._digested = len(turn.events)
        return news

    def _ask(
        self, session: Session, turn: OpenTurn, name: str, args: dict[str, Any], news: list[Seen]
    ) -> Decision:
        if self._sent is None:
            self._begin(turn)
        else:
            self._notes += news
        self._sent = len(turn.events)
        answer = self._send(session, name, args)
        if isinstance(answer, Forgotten):
            self._notes = [Enter(0), *_repeat(turn.before, 0), *_repeat_turn(turn)]
            answer = self._send(session, name, args)
        if not isinstance(answer, Decided):
            raise session.broke_protocol(failures.NO_DECISION, Phase.DECIDE, name)
        if answer.observe_errors or answer.fault is not None:
            self._note_faults(session, answer, name)
        return decision_of(answer)

    def _begin(self, turn: OpenTurn) -> None:
        """Add notes for the beginning of a turn, and for the decisions that came from the cache."""
        state = self._state
        kept = state.kept
        if kept is not self._beginning and kept.dead is not self._dead:
            kept = self._beginning  # Another guest keeps the state.
        self._notes.append(Enter(kept.number))
        if turn.before.turns > kept.turns:
            self._notes += _repeat(turn.before, kept.turns)
            # After a turn without a call, the handle is still the one from before that turn.
            if not self.apart and state.turns == turn.before.turns:
                state.kept = self._commit(turn.before.turns)
                self._notes.append(Enter(state.kept.number))
        self._notes += _repeat_turn(turn)

    def _commit(self, turns: int) -> Kept:
        self._last += 1
        self._notes.append(Commit(self._last))
        return Kept(self._last, turns, self._dead)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Do nothing yet: the guest sees the result together with the next request."""
        del call, result
        return ""

    def leave(self) -> Handle:
        turn = self._turn
        if turn is None:
            # The turn had no call, so the guest learns of it in the next turn.
            return self._state
        news, turns = self._news(turn), turn.before.turns + 1
        kept = self._state.kept
        if self._sent is not None:
            self._notes += news
            self._notes.append(Close())
            kept = self._commit(turns)
        self._turn = None
        return Handle((self._history, news), turns, kept)

    def close(self) -> None:
        if self._session is not None and self._process == os.getpid():
            self._session.close()
        self._session = None

    def start(self) -> None:
        self._reach()

    def _reach(self) -> Session:
        """Return the session of this process. A forked copy opens one of its own."""
        if self._session is None or self._process != os.getpid():
            self._session, self._process = self._open(), os.getpid()
            # The handles start again: high numbers would tell the guest how far the match is.
            self._notes, self._dead, self._last = [], [], 0
        return self._session

    def _send(self, session: Session, name: str, args: dict[str, Any]) -> Any:
        notes, self._notes = self._notes, []
        if len(self._dead) > FORGOTTEN_AT_ONCE:
            # Always the same number: another one would tell the guest how far the match is.
            dead = self._dead[:FORGOTTEN_AT_ONCE]
            del self._dead[:FORGOTTEN_AT_ONCE]
            # Send these last: an earlier note may commit a state that is already dropped.
            notes.append(Forget(dead))
        while len(notes) > 1 and sum(map(_size, notes)) > MAX_NOTES_CHARS:
            some = _as_many_as_fit(notes)
            notes = notes[len(some) :]
            answer = session.ask(Decide(some), Phase.OBSERVE)
            if not isinstance(answer, Noted):
                return answer
            self._note_faults(session, answer)
        return session.ask(Decide(notes, name, args), Phase.DECIDE, name)

    def _note_faults(self, session: Session, answer: Decided | Noted, tool: str = "") -> None:
        claims = [(claim, Phase.OBSERVE, "") for claim in answer.observe_errors]
        if isinstance(answer, Decided) and answer.fault is not None:
            claims.append((answer.fault, Phase.DECIDE, tool))
        room = max(0, MAX_FAULTS_KEPT - len(self._faults))
        for claim, phase, name in claims[:room]:
            self._faults.append(failures.reported_fault(claim, session.submission, phase, name))

    def take_faults(self) -> list[GuardrailFault]:
        """Return the first errors inside the guardrail since the last call of this method."""
        taken, self._faults = self._faults, []
        return taken


def decision_of(answer: Decided | CallDecided) -> Decision:
    """Return a guest's decision, as far as it is a valid one."""
    if answer.action is Action.ALLOW and not answer.reason and answer.fault is None:
        return ALLOWED
    reason = normalize_reason(answer.reason)
    if answer.fault is not None:
        return Decision(Action.DENY, reason, None, answer.fault.kind)
    if answer.action is not Action.SANITIZE:
        return Decision(answer.action, reason)
    if answer.args is None:
        return Decision(Action.DENY, reason, None, Fault.NOT_A_DECISION)
    return Decision(Action.SANITIZE, reason, answer.args)


def _repeat(trace: Trace, turns: int) -> list[Note]:
    """Return notes that repeat the closed turns of a history after the first `turns`."""
    notes: list[Note] = []
    for turn in _turns_after(trace, turns):
        notes += _repeat_turn(OpenTurn(NO_TRACE, turn.message, list(turn.turn_events)))
        notes.append(Close())
    return notes


def _turns_after(trace: Trace, turns: int) -> list[Trace]:
    """Return the closed turns of a history after the first `turns`, oldest first."""
    if trace.turns <= turns:
        return []
    return list(takewhile(lambda turn: turn.turns > turns, trace.backwards()))[::-1]


def _repeat_turn(turn: OpenTurn) -> list[Note]:
    """Return notes that repeat a turn: its message, the calls, and their results."""
    notes: list[Note] = [Begin(turn.message)]
    for event in turn.events:
        notes += (Redo(event.call.tool, event.call.plain_args()), _seen(event))
    return notes


def _seen(event: Event) -> Seen:
    """Return the public part of an event."""
    call, result, decision = event.ran or event.call, event.result, event.decision
    error = result.error
    return Seen(
        call.tool,
        call.plain_args(),
        result.ok,
        result.output.string,
        error,
        result.source,
        decision.action,
        decision.reason,
        error not in _NOT_RUN,
    )


def _size(note: Note) -> int:
    if isinstance(note, Begin):
        return 100 + len(note.message)
    if isinstance(note, Seen):
        return 100 + len(note.output) + _size_of(note.args)
    return 100 + (_size_of(note.args) if isinstance(note, Redo) else 0)


def _size_of(args: dict[str, Plain]) -> int:
    return sum(len(value if isinstance(value, str) else str(value)) for value in args.values())


def _as_many_as_fit(notes: list[Note]) -> list[Note]:
    total, count = 0, 0
    for note in notes:
        total += _size(note)
        if count and total > MAX_NOTES_CHARS:
            break
        count += 1
    return notes[:count]
