"""Calls a guardrail's methods, and turns every error inside them into a fault.

Any error inside a guardrail becomes a denial, and so does a `KeyboardInterrupt` that it raises
itself. A real Ctrl-C ends the run.
"""

import re
import weakref
from collections.abc import Awaitable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tiltyard.contracts.decision import ALLOWED, Action, Decision, Fault
from tiltyard.contracts.guardrail import Context, Guardrail, Result
from tiltyard.foundation.interrupts import Interrupted

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MAX_REASON_CHARS: Final = 500


class GuardrailCaller:
    """Calls one guardrail."""

    interrupts: tuple[type[BaseException], ...] = (Interrupted,)
    """What is no error of the guardrail, and ends the run."""

    def __init__(self, guardrail: Guardrail) -> None:
        self.guardrail = guardrail
        self._loop: AbstractEventLoop | None = None

    def ask(
        self, name: str, args: dict[str, Any], given: dict[str, Any], context: Context
    ) -> Decision:
        """Ask the guardrail. Any error is a denial with the error as its reason.

        `given` is the copy of `args` that the guardrail gets, and must not change.
        """
        try:
            decision: Any = self.guardrail.decide(name, given, context)
            if type(decision) is not Decision and isinstance(decision, Awaitable):
                decision = self._finish(decision)
            if given != args:
                reason = "decide changed tool_args; use Decision.sanitize(...) instead"
                return Decision(Action.DENY, reason, None, Fault.CHANGED_ARGUMENTS)
            return ALLOWED if decision is ALLOWED else _checked(decision)
        except self.interrupts:
            raise
        except BaseException as error:  # noqa: BLE001 - the guardrail may raise anything
            return Decision(Action.DENY, self.describe(error), None, Fault.RAISED)

    def show_result(self, name: str, args: dict[str, Any], result: Result) -> tuple[Any, str]:
        """Show the guardrail a result. Return what `observe` returns, and its error or ""."""
        observe = getattr(self.guardrail, "observe", None)
        if observe is None:
            return None, ""
        try:
            returned = observe(name, args, result)
            if returned is not None and isinstance(returned, Awaitable):
                returned = self._finish(returned)
        except self.interrupts:
            raise
        except BaseException as error:  # noqa: BLE001 - the guardrail may raise anything
            return None, self.describe(error)
        return returned, ""

    def describe(self, error: BaseException) -> str:
        """Return the reason to give for an exception: its text, and the author's line."""
        try:
            return _describe(error)
        except self.interrupts:
            raise
        except BaseException:  # noqa: BLE001 - even an exception's text is the author's code
            return normalize_reason(type(error).__name__)

    def make_loop(self) -> "AbstractEventLoop":
        """Return a new event loop. Only guardrails with coroutines need one."""
        import asyncio  # noqa: PLC0415 - most guardrails never need it

        return asyncio.new_event_loop()

    def _finish(self, awaitable: Awaitable[Any]) -> Any:
        """Run a coroutine to its end, on a loop that belongs to this guardrail."""
        import asyncio  # noqa: PLC0415 - most guardrails never need it

        if self._loop is None:
            self._loop = self.make_loop()
            weakref.finalize(self, self._loop.close)
        # A bridge may call from inside a running loop, which must not see this one.
        outer = asyncio._get_running_loop()  # noqa: SLF001 - asyncio offers it to loops
        asyncio._set_running_loop(None)  # noqa: SLF001 - as above
        try:
            return self._loop.run_until_complete(_awaited(awaitable))
        except Exception:
            raise
        except BaseException:
            # An exit or an interrupt can leave a loop in any state.
            self.close()
            raise
        finally:
            if self._loop is not None:
                _cancel_rest(self._loop)
            asyncio._set_running_loop(outer)  # noqa: SLF001 - as above

    def close(self) -> None:
        """End the event loop, if the guardrail needed one."""
        loop, self._loop = self._loop, None
        if loop is not None:
            _cancel_rest(loop)
            loop.close()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _cancel_rest(loop: "AbstractEventLoop") -> None:
    """Cancel the tasks that a coroutine left behind: no state but the attributes is kept."""
    import asyncio  # noqa: PLC0415 - loaded already

    rest = asyncio.all_tasks(loop)
    if not rest:
        return
    for task in rest:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))


_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)
_OURS: Final = f"{Path(__file__).parents[1]}/"


def _checked(decision: object) -> Decision:
    """Return a valid decision: right type, right fields, no fault set by the guardrail itself."""
    if not isinstance(decision, Decision):
        if isinstance(decision, Coroutine):
            decision.close()
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
    return Decision(action, reason, dict(sanitized))


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
