"""The guardrail runner: asks a guardrail, and carries its state from episode to episode.

Owns the `Runner` protocol, the runner for guardrails in this process, and the base class of
guardrails in another process. The runner turns everything that can go wrong inside a guardrail
into a denial.
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
from tiltyard.world.results import ToolCall, ToolResult
from tiltyard.world.tools import TOOLS

MAX_REASON_CHARS: Final = 500


class Runner(Protocol):
    """Whoever moves a guardrail from state to state: here, or in another process."""

    @property
    def initial(self) -> Any: ...

    def enter(self, state: Any) -> None: ...

    def show(self, state: Any) -> None: ...

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision: ...

    def observe(self, call: ToolCall, result: ToolResult) -> str: ...

    def leave(self) -> Any: ...


class RemoteGuardrail(GuardrailBase):
    """A guardrail that lives in another process, and brings who speaks with it."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def keep_episodes_apart(self) -> None:
        """Play each episode from now on in a process that has seen no other."""

    def failure(self) -> "GuardrailGoneError | None":
        """Return why it is no more, if it failed under a copy of this process made by fork."""
        return None

    def close(self) -> None:
        """End what lives elsewhere."""


class GuardrailGoneError(Exception):
    """A guardrail's process is no more. Nothing can be decided, so the match has no score."""


def keep_episodes_apart(guardrail: Guardrail) -> None:
    """Have a guardrail that lives elsewhere forget, between episodes, whatever it could keep."""
    if isinstance(guardrail, RemoteGuardrail):
        guardrail.keep_episodes_apart()


def failure_of(guardrail: Guardrail) -> GuardrailGoneError | None:
    """Return why a guardrail that lives elsewhere is no more, if that is known."""
    return guardrail.failure() if isinstance(guardrail, RemoteGuardrail) else None


def close_guardrail(guardrail: Guardrail) -> None:
    """End what a guardrail has elsewhere; one in this process has nothing to end."""
    if isinstance(guardrail, RemoteGuardrail):
        guardrail.close()


def runner_of(guardrail: Guardrail) -> Runner:
    """Return a guardrail's own runner if it brings one, else one for this process."""
    if isinstance(guardrail, RemoteGuardrail):
        return guardrail.runner
    return GuardrailRunner(guardrail)


class GuardrailRunner:
    """One guardrail instance, moved from state to state.

    Between `enter` and `leave` the instance is in the state entered and changes as its author
    wrote; `leave` returns what it became. States are values: any of them may be entered again.
    """

    def __init__(self, guardrail: Guardrail) -> None:
        self.guardrail = guardrail
        self._keeper = keeper_of(guardrail)
        self.initial = self._keeper.initial

    def enter(self, state: State) -> None:
        self._keeper.enter(self.guardrail, state)

    def show(self, state: State) -> None:
        self._keeper.show(self.guardrail, state)

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        """Ask the guardrail; whatever goes wrong is a denial that says so."""
        args = call.plain_args()
        given = args.copy()
        try:
            decision = self.guardrail.decide(call.tool, given, Context(turn, TOOLS.get(call.tool)))
            if given != args:
                reason = "decide changed tool_args; use Decision.sanitize(...) instead"
                return Decision(Action.DENY, reason, None, Fault.CHANGED_ARGUMENTS)
            return ALLOWED if decision is ALLOWED else _checked(decision)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code: anything can come
            return Decision(Action.DENY, _describe(error), None, Fault.RAISED)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Show the guardrail a result; return what went wrong in it, or nothing."""
        observe = getattr(self.guardrail, "observe", None)
        if observe is None:
            return ""
        error = None if result.error is None else result.error.value
        seen = Result(result.ok, result.output.string, error, result.source.value)
        try:
            observe(call.tool, call.plain_args(), seen)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code: anything can come
            return _describe(error)
        return ""

    def leave(self) -> State:
        return self._keeper.leave(self.guardrail)


_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)
_OURS: Final = f"{Path(__file__).parents[1]}/"
_SIMPLE: Final = (str, int, NoneType)


def _checked(decision: object) -> Decision:
    """Return a decision that can be believed: right type, right fields, no claimed fault."""
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
    # Exact types: a subclass could be one thing when it is checked and another when it is used.
    if all(type(name) is str and type(value) in _SIMPLE for name, value in args.items()):
        return Decision(action, reason, args)
    return Decision(Action.DENY, reason, None, Fault.NOT_A_REDACTION)


def _describe(error: BaseException) -> str:
    """Say what went wrong, and on which line of the author's."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            place = f" ({code.co_filename.rpartition('/')[2]}:{trace.tb_lineno})"
        trace = trace.tb_next
    try:
        return normalize_reason(f"{type(error).__name__}: {error}{place}")
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - even an exception's text is the author's code
        return normalize_reason(type(error).__name__)


def normalize_reason(reason: str) -> str:
    """Return a guardrail's words so that they can go into a trace.

    Cuts them to `MAX_REASON_CHARS`, makes them valid Unicode and removes memory addresses, which
    would differ from run to run. Traces are hashed, so control characters stay: use `printable` to
    show a reason.
    """
    clean = reason[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8")
    return _ADDRESS.sub("0x...", clean)
