"""The guardrail runner: asks a guardrail, and carries its state from episode to episode.

This module has the `Runner` protocol, the runner for guardrails in this process, and the base class
of guardrails in another process. Any error inside a guardrail becomes a denial, and so does a
`KeyboardInterrupt` that it raises itself. A real Ctrl-C ends the run.
"""

import re
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Final, Protocol

from tiltyard.contracts.decision import ALLOWED, Action, Decision, Fault
from tiltyard.contracts.guardrail import Context, Guardrail, GuardrailBase, Result
from tiltyard.contracts.trace import OpenTurn
from tiltyard.episode.kept_state import State, keeper_of
from tiltyard.foundation.interrupts import Interrupted
from tiltyard.world.results import ToolCall, ToolResult
from tiltyard.world.tools import TOOLS

MAX_REASON_CHARS: Final = 500


class Runner(Protocol):
    """Moves a guardrail from state to state, in this process or in another one."""

    @property
    def initial(self) -> Any: ...

    def enter(self, state: Any) -> None: ...

    def show(self, state: Any) -> None: ...

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision: ...

    def observe(self, call: ToolCall, result: ToolResult) -> str: ...

    def leave(self) -> Any: ...


class RemoteGuardrail(GuardrailBase):
    """A guardrail in another process. Its `runner` talks to that process."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def keep_episodes_apart(self) -> None:
        """Use a new process for every episode from now on."""

    def failure(self) -> "GuardrailGoneError | None":
        """Return the error, if the guardrail failed in a forked copy of this process."""
        return None

    def close(self) -> None:
        """End the other process."""


class GuardrailGoneError(Exception):
    """A guardrail's process ended. Without decisions, the match has no score."""


def keep_episodes_apart(guardrail: Guardrail) -> None:
    """Use a new process for every episode of a remote guardrail, so it cannot keep anything."""
    if isinstance(guardrail, RemoteGuardrail):
        guardrail.keep_episodes_apart()


def failure_of(guardrail: Guardrail) -> GuardrailGoneError | None:
    """Return the error of a remote guardrail, if it failed."""
    return guardrail.failure() if isinstance(guardrail, RemoteGuardrail) else None


def close_guardrail(guardrail: Guardrail) -> None:
    """End a remote guardrail's process. Do nothing for a guardrail in this process."""
    if isinstance(guardrail, RemoteGuardrail):
        guardrail.close()


def runner_of(guardrail: Guardrail) -> Runner:
    """Return the runner of a remote guardrail, or a new one for a guardrail in this process."""
    if isinstance(guardrail, RemoteGuardrail):
        return guardrail.runner
    return GuardrailRunner(guardrail)


class GuardrailRunner:
    """One guardrail instance, moved from state to state.

    `enter` puts the instance into a state, the guardrail's code then changes it, and `leave`
    returns its new state. States are values: each can be entered any number of times.
    """

    interrupts: tuple[type[BaseException], ...] = (Interrupted,)
    """What is no error of the guardrail, and ends the run."""

    def __init__(self, guardrail: Guardrail) -> None:
        self.guardrail = guardrail
        self._keeper = keeper_of(guardrail)
        self.initial = self._keeper.initial

    def enter(self, state: State) -> None:
        self._keeper.enter(self.guardrail, state)

    def show(self, state: State) -> None:
        self._keeper.show(self.guardrail, state)

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        """Ask the guardrail. Any error is a denial with the error as its reason."""
        args = call.plain_args()
        given = args.copy()
        try:
            decision = self.guardrail.decide(call.tool, given, Context(turn, TOOLS.get(call.tool)))
            if given != args:
                reason = "decide changed tool_args; use Decision.sanitize(...) instead"
                return Decision(Action.DENY, reason, None, Fault.CHANGED_ARGUMENTS)
            return ALLOWED if decision is ALLOWED else _checked(decision)
        except self.interrupts:
            raise
        except BaseException as error:  # noqa: BLE001 - the guardrail may raise anything
            return Decision(Action.DENY, self.describe(error), None, Fault.RAISED)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Show the guardrail a result. Return its error, or an empty string."""
        observe = getattr(self.guardrail, "observe", None)
        if observe is None:
            return ""
        error = None if result.error is None else result.error.value
        seen = Result(result.ok, result.output.string, error, result.source.value)
        try:
            observe(call.tool, call.plain_args(), seen)
        except self.interrupts:
            raise
        except BaseException as error:  # noqa: BLE001 - the guardrail may raise anything
            return self.describe(error)
        return ""

    def describe(self, error: BaseException) -> str:
        """Return the reason to give for an exception: its text, and the author's line."""
        try:
            return _describe(error)
        except self.interrupts:
            raise
        except BaseException:  # noqa: BLE001 - even an exception's text is the author's code
            return normalize_reason(type(error).__name__)

    def leave(self) -> State:
        return self._keeper.leave(self.guardrail)


_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)
_OURS: Final = f"{Path(__file__).parents[1]}/"
_SIMPLE: Final = (str, int, NoneType)


def _checked(decision: object) -> Decision:
    """Return a valid decision: right type, right fields, no fault set by the guardrail itself."""
    if isinstance(decision, Coroutine):
        decision.close()
        return Decision(Action.DENY, "decide must not be async", None, Fault.NOT_A_DECISION)
    if not isinstance(decision, Decision):
        reason = f"decide returned {type(decision).__name__}, not a Decision"
        return Decision(Action.DENY, reason, None, Fault.NOT_A_DECISION)
    try:
        action = Action(str(decision.action).lower())
    except ValueError:
        reason = f"unknown action {str(decision.action)[:50]!r}"
        return Decision(Action.DENY, normalize_reason(reason), None, Fault.NOT_A_DECISION)
    reason = normalize_reason(str(decision.reason))
    if action is not Action.SANITIZE:
        return Decision(action, reason)
    sanitized = decision.sanitized_args
    if not isinstance(sanitized, Mapping):
        return Decision(Action.DENY, "sanitize without arguments", None, Fault.NOT_A_DECISION)
    args = dict(sanitized)
    # Exact types: a subclass could behave differently when it is used than when it is checked.
    if all(type(name) is str and type(value) in _SIMPLE for name, value in args.items()):
        return Decision(action, reason, args)
    return Decision(Action.DENY, reason, None, Fault.NOT_A_REDACTION)


def _describe(error: BaseException) -> str:
    """Return the error in one line, with the line number in the author's file."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            place = f" ({code.co_filename.rpartition('/')[2]}:{trace.tb_lineno})"
        trace = trace.tb_next
    return normalize_reason(f"{type(error).__name__}: {error}{place}")


def normalize_reason(reason: str) -> str:
    """Return a guardrail's words so that they can go into a trace.

    Cuts them to `MAX_REASON_CHARS`, makes them valid Unicode and removes memory addresses, which
    would differ from run to run. Traces are hashed, so control characters stay: use `printable` to
    show a reason.
    """
    clean = reason[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8")
    return _ADDRESS.sub("0x...", clean)
