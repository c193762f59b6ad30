"""The guardrail's side of the wire: applies the judge's notes, and decides calls.

The server keeps guardrail states under handles, so that the judge can return to one. When there are
too many states, it drops the oldest; if the judge needs one of these, it sends the history again.
"""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tiltyard.contracts.decision import ALLOWED, Action, Decision
from tiltyard.contracts.trace import NO_TRACE, Answer, Event, OpenTurn, Trace
from tiltyard.episode.guardrail_runner import GuardrailRunner
from tiltyard.episode.kept_state import State
from tiltyard.isolation.guest import virtual_clock
from tiltyard.isolation.guest.guest_caller import GuestCaller
from tiltyard.isolation.wire.channel import Channel, MalformedError
from tiltyard.isolation.wire.frames import (
    Begin,
    Close,
    Commit,
    Decide,
    Decided,
    Enter,
    FaultNote,
    Forget,
    Forgotten,
    Noted,
    Redo,
    Seen,
)
from tiltyard.world.results import Argument, ToolCall, ToolResult
from tiltyard.world.text import by_machine

MAX_STATES: Final = 8192
_NO_ANSWER: Final = Answer("")


class GuardrailServer:
    """One guardrail, its earlier states, and the current turn."""

    def __init__(
        self, guardrail: Any, wire: Channel[Any], clock: virtual_clock.Clock, submission: Path
    ) -> None:
        self._runner = _Runner(guardrail, submission, clock)
        self._wire = wire
        self._clock = clock
        self._states: OrderedDict[int, tuple[State, Trace]] = OrderedDict()
        self._states[0] = self._runner.initial, NO_TRACE
        self._trace = NO_TRACE
        self._turn: OpenTurn | None = None
        self._asked: tuple[dict[str, Any], ToolCall] = {}, ToolCall("", {})
        """The last call that the guardrail decided, with its plain arguments."""
        self._observe_errors: list[FaultNote] = []
        self._apply: dict[type, Callable[[Any], bool]] = {
            Seen: self._see,
            Begin: self._begin,
            Redo: self._redo,
            Close: self._close,
            Commit: self._commit,
            Forget: self._forget,
            Enter: self._enter,
        }

    def serve(self, frame: Any) -> None:
        """Answer the judge, from this frame on, until it closes the channel."""
        while True:
            if not isinstance(frame, Decide):
                raise MalformedError(f"expected Decide, not {type(frame).__name__}")
            self._observe_errors = []
            self._wire.send(self._answer(frame))
            frame = self._wire.receive()

    def _answer(self, frame: Decide) -> Decided | Noted | Forgotten:
        for note in frame.notes:
            if not self._apply[type(note)](note):
                return Forgotten()
        if frame.name:
            return self._decided(self._decide(frame.name, frame.args))
        return Noted(self._observe_errors)

    def _decided(self, decision: Decision) -> Decided:
        args, fault = decision.sanitized_args, decision.fault
        return Decided(
            decision.action,
            decision.reason,
            None if args is None else dict(args),
            None if fault is None else self._runner.fault_note(fault, decision.reason),
            self._observe_errors,
        )

    # One method for each kind of note. They return False if the guest has dropped the state.

    def _begin(self, note: Begin) -> bool:
        self._turn = OpenTurn(self._trace, note.message, [])
        return True

    def _redo(self, note: Redo) -> bool:
        self._decide(note.name, note.args)
        return True

    def _close(self, note: Close) -> bool:
        del note
        if self._turn is not None:
            self._trace = self._turn.closed(_NO_ANSWER)
            self._turn = None
        return True

    def _commit(self, note: Commit) -> bool:
        self._states[note.handle] = self._runner.leave(), self._trace
        if len(self._states) > MAX_STATES:
            # State 0 stays: the judge can send every history again from there.
            del self._states[next(handle for handle in self._states if handle)]
        return True

    def _forget(self, note: Forget) -> bool:
        for handle in note.handles:
            if handle:
                self._states.pop(handle, None)
        return True

    def _enter(self, note: Enter) -> bool:
        handle = note.handle
        kept = self._states.get(handle)
        if kept is None:
            return False
        if handle:
            self._states.move_to_end(handle)
        state, self._trace = kept
        self._turn = None
        self._runner.enter(state)
        return True

    def _decide(self, name: str, args: dict[str, Any]) -> Decision:
        turn = self._turn or OpenTurn(self._trace, "", [])
        self._clock.at_event(turn.before.event_count + len(turn.events))
        self._asked = args, _call(name, args)
        return self._runner.decide(self._asked[1], turn)

    def _see(self, seen: Seen) -> bool:
        turn = self._turn
        if turn is None:
            return True
        index = turn.before.event_count + len(turn.events)
        args, call = self._asked
        if call.tool != seen.name or args != seen.args:
            call = _call(seen.name, seen.args)
        result = ToolResult(seen.ok, by_machine(seen.output), seen.source, seen.error)
        decision = ALLOWED
        if seen.decision is not Action.ALLOW:
            decision = Decision(seen.decision, seen.reason)
        turn.events.append(Event(index, turn.before.turns, call, decision, result))
        if seen.observe:
            self._clock.at_event(index)
            if self._runner.observe(call, result):
                self._observe_errors.append(self._runner.raised())
        return True


class _Runner(GuestCaller, GuardrailRunner):
    """A guardrail runner that also notes the line of the submission behind an exception."""


def _call(name: str, args: dict[str, Any]) -> ToolCall:
    labelled: dict[str, Argument] = {
        key: by_machine(value) if isinstance(value, str) else value for key, value in args.items()
    }
    return ToolCall(name, labelled)
