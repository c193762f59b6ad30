"""The history of a conversation over declared tools, as contexts and reports show it."""

from typing import Any, Final

import msgspec
from msgspec import structs

from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Result, Setting
from tiltyard.contracts.trace import PublicEvent
from tiltyard.episode.reduction import flat_args
from tiltyard.world.results import ToolError

NO_RESULT: Final = "no_result"
"""The error of a call that may run, until its result arrives."""
_STOPPED: Final = {
    Action.DENY: ToolError.DENIED.value,
    Action.CONFIRM: ToolError.NOT_CONFIRMED.value,
}


class History:
    """Messages and calls, oldest first. A call is there as soon as it is decided."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._messages: list[str] = []
        self.events: list[PublicEvent] = []
        self._open: dict[bytes, list[int]] = {}
        """The calls without a result, by name and arguments."""
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")

    def use(self, setting: Setting) -> None:
        """Replace the setting for later calls."""
        self._setting = setting

    def say(self, message: str) -> None:
        self._messages.append(message)

    def decided(self, name: str, args: dict[str, Any], decision: Decision) -> None:
        """Add a call. `args` are the arguments with which it may run."""
        error = _STOPPED.get(decision.action, NO_RESULT)
        if decision.fault is not None:
            error = ToolError.GUARDRAIL_ERROR.value
        elif decision.action is not Action.DENY:
            # A user may confirm, and a bridge may report the result of any call that ran.
            self._open.setdefault(self._key(name, args), []).append(len(self.events))
        failed = Result(ok=False, output="", error=error, source="tool")
        self._add(name, args, failed, decision)

    def observed(self, name: str, args: dict[str, Any], result: Result, fault: str) -> None:
        """Add the result of the oldest open call with this name and these arguments."""
        key = self._key(name, args)
        numbers = self._open.get(key)
        if numbers is None:
            self._add(name, args, result, Decision.allow(), fault)
            return
        number = numbers.pop(0)
        if not numbers:
            del self._open[key]
        self.events[number] = structs.replace(
            self.events[number],
            ok=result.ok,
            output=result.output,
            error=result.error,
            source=result.source,
            observe_error=fault,
        )

    def _add(
        self, name: str, args: dict[str, Any], result: Result, decision: Decision, fault: str = ""
    ) -> None:
        about = self._setting.about(name)
        self.events.append(
            PublicEvent(
                len(self.events),
                max(0, len(self._messages) - 1),
                name,
                args,
                result.ok,
                result.output,
                result.error,
                result.source,
                about.side_effect,
                about.scope,
                decision.action,
                decision.reason,
                fault,
            )
        )

    def _key(self, name: str, args: dict[str, Any]) -> bytes:
        return self._encoder.encode((name, args))

    # What `tiltyard.contracts.guardrail.Past` asks for.

    @property
    def message(self) -> str:
        return self._messages[-1] if self._messages else ""

    @property
    def user_messages(self) -> list[str]:
        return [*self._messages]

    def public_events(self) -> list[PublicEvent]:
        return [*self.events]

    def last_sources(self, count: int) -> list[str]:
        return [event.source for event in self.events[-count:]]

    def last_tools(self, count: int) -> list[str]:
        return [event.name for event in self.events[-count:]]


class FlatHistory(History):
    """A history for contract 1: nested arguments are JSON strings."""

    def public_events(self) -> list[PublicEvent]:
        return [structs.replace(event, args=flat_args(event.args)) for event in self.events]
