"""A guardrail in a jail, from the judge's side.

The judge never holds the guardrail's state: it holds a handle, and the guest keeps the state. If
the guest has forgotten it, everything is told again from the trace, so that a restored state is
the replayed one. What happened since the last decision goes along with the next one, in one frame.

What was decided after the same words, calls and results is remembered and not asked again. A
search that returns to where it was by playing it once more asks a third of its questions twice.
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
from tiltyard.episode.guardrail_runner import RemoteGuardrail, normalize_reason
from tiltyard.isolation.host.session import GuestError, Session
from tiltyard.isolation.wire import (
    Begin,
    Close,
    Commit,
    Decide,
    Enter,
    Forget,
    Forgotten,
    Note,
    Noted,
    Redo,
    Seen,
    Told,
)
from tiltyard.world.results import ToolCall, ToolError, ToolResult

MAX_NOTES_CHARS: Final = 150_000
"""In one frame; a character may take four bytes, and a call's own arguments come on top."""
MAX_FAULTS_KEPT: Final = 20
FORGOTTEN_AT_ONCE: Final = 32
MAX_LAST_WORDS: Final = 1 << 17
"""In bytes: five texts of a `GuestError`, as they are packed."""
MAX_REMEMBERED: Final = 200_000
_NOT_RUN: Final = (ToolError.DENIED, ToolError.NOT_CONFIRMED, ToolError.GUARDRAIL_ERROR)


class Kept:
    """A state that a guest keeps, as long as anybody may return to it."""

    __slots__ = ("dead", "number", "turns")

    def __init__(self, number: int, turns: int, dead: list[int]) -> None:
        self.number = number
        self.turns = turns
        """How many turns of the trace the guest was told before it."""
        self.dead = dead
        """Of the guest that keeps it: the numbers that nobody can return to any more."""

    def __del__(self) -> None:
        self.dead.append(self.number)


class Handle:
    """A moment in an episode, between two turns."""

    __slots__ = ("history", "kept", "turns")

    def __init__(self, history: Any, turns: int, kept: Kept) -> None:
        self.history = history
        """All that a guest would have been told and asked in so many turns: a digest of it up to
        the last question, and what came after."""
        self.turns = turns
        self.kept = kept
        """The nearest state on the way here that a guest keeps."""


class JailedGuardrail(RemoteGuardrail):
    """A submission's guardrail: use it wherever a guardrail is wanted."""

    runner: "JailedRunner"

    def __init__(self, open_session: Callable[[], Session]) -> None:
        super().__init__(JailedRunner(open_session))

    def keep_episodes_apart(self) -> None:
        self.runner.apart = True

    def failure(self) -> GuestError | None:
        return self.runner.last_words.read()

    def close(self) -> None:
        self.runner.close()


class LastWords:
    """Why a guest failed, where copies of this process made by fork can tell it to each other."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, MAX_LAST_WORDS)

    def write(self, error: GuestError) -> None:
        packed = error.packed()
        self._page.seek(0)
        self._page.write(len(packed).to_bytes(4, "big") + packed)

    def read(self) -> GuestError | None:
        size = int.from_bytes(self._page[:4], "big")
        return GuestError.unpacked(self._page[4 : 4 + size]) if size else None


class JailedRunner:
    """Moves a guardrail in another process from state to state."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._dead: list[int] = []
        self._beginning = Kept(0, 0, [])
        """Every guest has it: it is how all begin."""
        self.initial = Handle(b"", 0, self._beginning)
        self.apart = False
        """Have a guest play one episode, and no more."""
        self._open = open_session
        self._session: Session | None = None
        self._process = 0
        self._notes: list[Note] = []
        self._state = self.initial
        self._history: Any = b""
        self._turn: OpenTurn | None = None
        """The turn that is going on, if it was heard of."""
        self._digested = 0
        """So many of its events are in the history,"""
        self._told: int | None = None
        """and so many the guest was told. None: it was not even told that the turn began."""
        self._last = 0
        self._decided: dict[bytes, Decision] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self.last_words = LastWords()
        self.faults: list[str] = []
        """What went wrong inside the guardrail, the first of it."""

    def enter(self, state: Handle) -> None:
        if self.apart and state is self.initial:
            self.close()
        self._state = state
        self._turn = None

    def show(self, state: Handle) -> None:
        """Do nothing: nobody can look into another process."""

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        args = call.plain_args()
        news = self._news(turn)
        asked = self._encoder.encode((self._history, news, call.tool, args))
        self._history = blake2b(asked, digest_size=16).digest()
        if self._told is None and not self.apart:
            known = self._decided.get(self._history)
            if known is not None:
                return known
        try:
            decision = self._ask(self._reach(), turn, call.tool, args, news)
        except GuestError as error:
            self.last_words.write(error)
            raise
        if len(self._decided) >= MAX_REMEMBERED:
            self._decided.clear()
        self._decided[self._history] = decision
        return decision

    def _news(self, turn: OpenTurn) -> list[Seen]:
        """Return what happened since it was last asked for."""
        if self._turn is not turn:
            self._turn, self._told, self._digested = turn, None, 0
            # Turns without a call have left nothing behind in the handle.
            said = [closed.message for closed in _behind(turn.before, self._state.turns)]
            self._history = self._state.history, said, turn.message
        news = [_seen(event) for event in turn.events[self._digested :]]
        self._digested = len(turn.events)
        return news

    def _ask(
        self, session: Session, turn: OpenTurn, name: str, args: dict[str, Any], news: list[Seen]
    ) -> Decision:
        if self._told is None:
            self._begin(turn)
        else:
            self._notes += news
        self._told = len(turn.events)
        answer = self._send(session, name, args)
        if isinstance(answer, Forgotten):
            self._notes = [Enter(0), *_again(turn.before, 0), *_again_in(turn)]
            answer = self._send(session, name, args)
        if not isinstance(answer, Told):
            raise session.failed("answered something else than a decision", f"decide {name}")
        if answer.observe_errors:
            self._remember(answer.observe_errors)
        return self._decision(answer)

    def _begin(self, turn: OpenTurn) -> None:
        """Note how a turn began, and what happened in it while nobody had to be asked."""
        state = self._state
        kept = state.kept
        if kept is not self._beginning and kept.dead is not self._dead:
            kept = self._beginning  # Another guest keeps it.
        self._notes.append(Enter(kept.number))
        if turn.before.turns > kept.turns:
            self._notes += _again(turn.before, kept.turns)
            # After a turn without a call the handle is still that of the moment before it.
            if not self.apart and state.turns == turn.before.turns:
                state.kept = self._commit(turn.before.turns)
                self._notes.append(Enter(state.kept.number))
        self._notes += _again_in(turn)

    def _commit(self, turns: int) -> Kept:
        self._last += 1
        self._notes.append(Commit(self._last))
        return Kept(self._last, turns, self._dead)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Do nothing yet: the guest is shown the result together with the next question."""
        del call, result
        return ""

    def leave(self) -> Handle:
        turn = self._turn
        if turn is None:
            # No call was made, so only the next turn will tell of this one.
            return self._state
        news, turns = self._news(turn), turn.before.turns + 1
        kept = self._state.kept
        if self._told is not None:
            self._notes += news
            self._notes.append(Close())
            kept = self._commit(turns)
        self._turn = None
        return Handle((self._history, news), turns, kept)

    def close(self) -> None:
        if self._session is not None and self._process == os.getpid():
            self._session.close()
        self._session = None

    def _reach(self) -> Session:
        """Return the guest of this process: a copy made by fork needs one of its own."""
        if self._session is None or self._process != os.getpid():
            self._session, self._process = self._open(), os.getpid()
            # Numbers begin anew: how far they are would tell how far the match has come.
            self._notes, self._dead, self._last = [], [], 0
        return self._session

    def _send(self, session: Session, name: str, args: dict[str, Any]) -> Any:
        notes, self._notes = self._notes, []
        if len(self._dead) > FORGOTTEN_AT_ONCE:
            # Always so many: how many there are would tell the guest how far the match has come.
            dead = self._dead[:FORGOTTEN_AT_ONCE]
            del self._dead[:FORGOTTEN_AT_ONCE]
            # Behind the notes, of which one may still commit what nobody wants any more.
            notes.append(Forget(dead))
        while len(notes) > 1 and sum(map(_size, notes)) > MAX_NOTES_CHARS:
            some = _as_many_as_fit(notes)
            notes = notes[len(some) :]
            answer = session.ask(Decide(some), f"observe before {name}")
            if not isinstance(answer, Noted):
                return answer
            self._remember(answer.observe_errors)
        return session.ask(Decide(notes, name, args), f"decide {name}")

    def _decision(self, told: Told) -> Decision:
        """Return a guest's decision, believed as far as it is one."""
        if told.action == Action.ALLOW and not told.reason and told.fault is None:
            return ALLOWED
        reason = normalize_reason(told.reason)
        try:
            action, fault = Action(told.action), None if told.fault is None else Fault(told.fault)
        except ValueError:
            return Decision(Action.DENY, "no decision", None, Fault.NOT_A_DECISION)
        if fault is not None:
            self._remember([f"{fault.value}: {reason}"])
            return Decision(Action.DENY, reason, None, fault)
        if action is Action.SANITIZE and told.args is None:
            return Decision(Action.DENY, reason, None, Fault.NOT_A_DECISION)
        return Decision(action, reason, told.args if action is Action.SANITIZE else None)

    def _remember(self, faults: list[str]) -> None:
        room = MAX_FAULTS_KEPT - len(self.faults)
        self.faults += (normalize_reason(fault) for fault in faults[:room])


def _again(trace: Trace, turns: int) -> list[Note]:
    """Tell a guest the closed turns of a history again, behind the first so many."""
    notes: list[Note] = []
    for turn in _behind(trace, turns):
        notes += _again_in(OpenTurn(NO_TRACE, turn.message, list(turn.turn_events)))
        notes.append(Close())
    return notes


def _behind(trace: Trace, turns: int) -> list[Trace]:
    """Return the closed turns of a history behind the first so many, oldest first."""
    if trace.turns <= turns:
        return []
    return list(takewhile(lambda turn: turn.turns > turns, trace.backwards()))[::-1]


def _again_in(turn: OpenTurn) -> list[Note]:
    """Tell a guest again what was said, what it decided and what came of it."""
    notes: list[Note] = [Begin(turn.message)]
    for event in turn.events:
        notes += (Redo(event.call.tool, event.call.plain_args()), _seen(event))
    return notes


def _seen(event: Event) -> Seen:
    """Return what everybody may see of an event, and the guest is to be told."""
    call, result, decision = event.ran or event.call, event.result, event.decision
    error = result.error
    return Seen(
        call.tool,
        call.plain_args(),
        result.ok,
        result.output.string,
        None if error is None else error.value,
        result.source.value,
        decision.action.value,
        decision.reason,
        error not in _NOT_RUN,
    )


def _size(note: Note) -> int:
    if isinstance(note, Seen):
        return len(note.output) + sum(len(str(value)) for value in note.args.values()) + 100
    if isinstance(note, Redo):
        return sum(len(str(value)) for value in note.args.values()) + 100
    return 100 + (len(note.message) if isinstance(note, Begin) else 0)


def _as_many_as_fit(notes: list[Note]) -> list[Note]:
    total, count = 0, 0
    for note in notes:
        total += _size(note)
        if count and total > MAX_NOTES_CHARS:
            break
        count += 1
    return notes[:count]


__all__ = ["GuestError", "Handle", "JailedGuardrail", "JailedRunner"]
