"""A guardrail in a jail, from the judge's side.

The judge never holds the guardrail's state: it holds a handle, and the guest keeps the state. If
the guest has forgotten it, everything is told again from the trace, so that a restored state is
the replayed one. What happened since the last decision goes along with the next one, in one frame.
"""

import os
from collections.abc import Callable
from typing import Any, Final

from tiltyard.decision import ALLOWED, Action, Decision, Fault
from tiltyard.guardrail import RemoteGuardrail, printable
from tiltyard.isolation.session import GuestError, Session
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
from tiltyard.trace import Event, OpenTurn, Trace, public
from tiltyard.world.results import ToolCall, ToolError, ToolResult

MAX_NOTES_CHARS: Final = 150_000
"""In one frame; a character may take four bytes, and a call's own arguments come on top."""
MAX_FAULTS_KEPT: Final = 20
FORGOTTEN_AT_ONCE: Final = 32
_NOT_RUN: Final = (ToolError.DENIED, ToolError.NOT_CONFIRMED, ToolError.GUARDRAIL_ERROR)


class Handle:
    """A state that the guest keeps, as long as anybody may return to it."""

    __slots__ = ("_dead", "number", "turns")

    def __init__(self, number: int, turns: int, dead: list[int]) -> None:
        self.number = number
        self.turns = turns
        """How many turns of the trace the guest was told before it."""
        self._dead = dead

    def __del__(self) -> None:
        self._dead.append(self.number)


class JailedGuardrail(RemoteGuardrail):
    """A submission's guardrail: use it wherever a guardrail is wanted."""

    runner: "JailedRunner"

    def __init__(self, open_session: Callable[[], Session]) -> None:
        super().__init__(JailedRunner(open_session))

    def close(self) -> None:
        self.runner.close()


class JailedRunner:
    """Moves a guardrail in another process from state to state."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._dead: list[int] = []
        """States that nobody can return to any more."""
        self.initial = Handle(0, 0, self._dead)
        self._open = open_session
        self._session: Session | None = None
        self._process = 0
        self._notes: list[Note] = []
        self._state = self.initial
        self._turn: OpenTurn | None = None
        self._told = 0
        self._last = 0
        self.faults: list[str] = []
        """What went wrong inside the guardrail, the first of it."""

    def enter(self, state: Handle) -> None:
        self._state = state
        self._turn = None

    def show(self, state: Handle) -> None:
        """Do nothing: nobody can look into another process."""

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        session = self._reach()
        if self._turn is None:
            self._notes.append(Enter(self._state.number))
            for closed in _since(turn.before, self._state.turns):
                self._notes.append(Begin(closed.message))
                self._notes.extend(map(_seen, closed.turn_events))
                self._notes.append(Close())
            self._notes.append(Begin(turn.message))
            self._turn, self._told = turn, 0
        self._catch_up()
        args = call.plain_args()
        answer = self._ask(session, call.tool, args)
        if isinstance(answer, Forgotten):
            self._notes = list(_from_the_start(turn))
            answer = self._ask(session, call.tool, args)
        if not isinstance(answer, Told):
            raise session.failed("answered something else than a decision", f"decide {call.tool}")
        self._remember(answer.observe_errors)
        return self._decision(answer)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Do nothing yet: the guest is shown the result together with the next question."""
        del call, result
        return ""

    def leave(self) -> Handle:
        if self._turn is None:
            return self._state
        self._catch_up()
        self._last += 1
        self._notes += (Close(), Commit(self._last))
        turns = self._turn.before.turns + 1
        self._turn = None
        return Handle(self._last, turns, self._dead)

    def close(self) -> None:
        if self._session is not None and self._process == os.getpid():
            self._session.close()
        self._session = None

    def _catch_up(self) -> None:
        if self._turn is not None:
            self._notes.extend(map(_seen, self._turn.events[self._told :]))
            self._told = len(self._turn.events)

    def _reach(self) -> Session:
        """Return the guest of this process: a copy made by fork needs one of its own."""
        if self._session is None or self._process != os.getpid():
            self._session, self._process = self._open(), os.getpid()
            self._notes = []
        return self._session

    def _ask(self, session: Session, name: str, args: dict[str, Any]) -> Any:
        notes, self._notes = self._notes, []
        if len(self._dead) > FORGOTTEN_AT_ONCE:
            # Always so many: how many there are would tell the guest how far the match has come.
            dead = self._dead[:FORGOTTEN_AT_ONCE]
            del self._dead[:FORGOTTEN_AT_ONCE]
            # Behind the notes, of which one may still commit what nobody wants any more.
            notes.append(Forget(dead))
        while sum(map(_size, notes)) > MAX_NOTES_CHARS and len(notes) > 1:
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
        reason = printable(told.reason)
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
        self.faults += (printable(fault) for fault in faults[:room])


def _since(trace: Trace, turns: int) -> list[Trace]:
    """Return the closed turns of a history behind the first so many, oldest first."""
    found: list[Trace] = []
    for turn in trace.backwards():
        if turn.turns <= turns:
            break
        found.append(turn)
    found.reverse()
    return found


def _from_the_start(turn: OpenTurn) -> list[Note]:
    """Tell a guest everything again that led to this moment."""
    notes: list[Note] = [Enter(0)]
    for closed in turn.before.all_turns():
        notes.append(Begin(closed.message))
        for event in closed.turn_events:
            notes += (Redo(event.call.tool, event.call.plain_args()), _seen(event))
        notes.append(Close())
    notes.append(Begin(turn.message))
    for event in turn.events:
        notes += (Redo(event.call.tool, event.call.plain_args()), _seen(event))
    return notes


def _seen(event: Event) -> Seen:
    told = public(event)
    return Seen(
        told.name,
        told.args,
        told.ok,
        told.output,
        told.error,
        told.source,
        told.decision.value,
        told.reason,
        event.result.error not in _NOT_RUN,
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
