"""One conversation of the decider: its guardrail, its tools and its open calls."""

import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from tiltyard.bridges.guard.record import Recorder
from tiltyard.bridges.guard.results import read_answer, write_answer
from tiltyard.bridges.guard.toolbox import Toolbox
from tiltyard.contracts.asking import Ask
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.declaration import DeclarationError
from tiltyard.contracts.policy import Policy
from tiltyard.episode.conversation import UNCHECKABLE, Conversation, OpenConversation
from tiltyard.foundation.printable import printable
from tiltyard.inference import Overlay
from tiltyard.world.results import ToolError

MAX_OPEN_CALLS: Final = 10_000
HUNG_SECONDS: Final = 8.0
"""How long a guardrail in this process may take."""


class HungError(BaseException):
    """A guardrail in this process took too long."""


def stop_hung(*_: object) -> None:
    """Handle the alarm that `Talk` sets."""
    raise HungError(f"the guardrail gave no answer within {HUNG_SECONDS:.0f} seconds")


def with_timer_stopped(ask: Ask) -> Ask:
    """Return `ask`, which has a deadline of its own, outside the time of the guardrail."""

    def answer(question: str, schema: dict[str, Any]) -> Any:
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            return ask(question, schema)
        finally:
            signal.setitimer(signal.ITIMER_REAL, left)

    return answer


class Talk:
    """One conversation: its guardrail, its tools, its calls."""

    def __init__(
        self, begin: OpenConversation, policy: Policy, overlay: Overlay, recorder: Recorder
    ) -> None:
        self._conversation: Conversation = begin((), policy)
        self._toolbox = Toolbox(policy, overlay)
        self._recorder = recorder
        self._messages: set[str] = set()
        self._open: dict[int, tuple[str, dict[str, Any], object]] = {}
        self._tags: dict[str, int] = {}
        """Open calls by the names that a hook gave them."""
        self._calls = 0
        self._gone = ""
        """Why the guardrail cannot be asked any more."""

    def say(self, text: str, *, once: bool = False) -> dict[str, Any]:
        if not (once and text in self._messages):
            self._messages.add(text)
            self._reach(lambda: self._conversation.say(text))
            self._recorder.write("message", text=text)
        return {}

    def tools(self, server: str, frame: bytes) -> dict[str, Any]:
        body = msgspec.json.decode(frame)
        news = [*self._toolbox.take(server, body.get("result"))]
        if any(one.declaration is not None for one in news):
            self._reach(lambda: self._conversation.declare(self._toolbox.declarations()))
        for one in news:
            self._recorder.write(
                "tool",
                server=server,
                name=one.raw["name"],
                known_as=one.name,
                sha256=one.digest,
                declaration=one.raw,
                refused=one.refused,
            )
        return {"new": len(news)}

    def call(self, header: dict[str, Any], frame: bytes) -> dict[str, Any]:
        server, name = header["server"], header["name"]
        tool = self._toolbox.find(server, name)
        if tool is None and not header.get("last"):
            return {"unknown": True}
        args = msgspec.json.decode(frame)["params"].get("arguments") or {}
        known_as = name if tool is None else tool.name
        self._calls += 1
        number = self._calls
        self._recorder.write(
            "call", call=number, server=server, name=name, known_as=known_as, args=args
        )
        by = "guardrail"
        if tool is not None and tool.refused:
            by = "guard"
            decision = Decision.deny(f"the guard refuses this tool's declaration: {tool.refused}")
        else:
            decision = self._decide(known_as, args)
        self._note(number, decision, by)
        ran = decision.sanitized_args if decision.action is Action.SANITIZE else args
        said = None
        if tool is not None and tool.declaration is not None:
            said = tool.declaration.corrections.get("source")
        if decision.action is not Action.DENY or header.get("shadow"):
            self._open[number] = known_as, dict(ran or {}), said
            if len(self._open) > MAX_OPEN_CALLS:
                del self._open[next(iter(self._open))]
            if header.get("tag"):
                self._tags[header["tag"]] = number
                if len(self._tags) > MAX_OPEN_CALLS:
                    del self._tags[next(iter(self._tags))]
        reply: dict[str, Any] = {
            "call": number,
            "action": decision.action.value,
            "reason": decision.reason,
        }
        if decision.action is Action.SANITIZE:
            reply["args"] = ran
        if decision.fault is not None:
            reply["fault"] = decision.fault.value
        return reply if by == "guardrail" else reply | {"guardrail": ""}

    def _decide(self, name: str, args: dict[str, Any]) -> Decision:
        if self._gone:
            return Decision.deny(self._gone)
        found: list[Decision] = []
        self._reach(lambda: found.append(self._conversation.decide(name, args)))
        return found[0] if found else Decision.deny(self._gone)

    def _note(self, number: int, decision: Decision, by: str) -> None:
        self._recorder.write(
            "decision",
            call=number,
            action=decision.action.value,
            reason=decision.reason,
            fault=decision.fault,
            args=decision.sanitized_args,
            by=by,
        )

    def confirmed(self, number: int, *, yes: bool) -> dict[str, Any]:
        """Note what the user answered to a question about a call."""
        decision = Decision.allow("confirmed") if yes else Decision.deny("not confirmed")
        self._note(number, decision, "user")
        if not yes:
            self._open.pop(number, None)
        return {}

    def result(self, call: int | str, frame: bytes) -> dict[str, Any]:
        number = self._tags.pop(call, 0) if isinstance(call, str) else call
        if number not in self._open:
            return {"withheld": True, "reason": "the guard does not know this call"}
        name, args, said = self._open.pop(number)
        body = msgspec.json.decode(frame)
        result = read_answer(body, said)
        kept: list[Any] = []
        if not self._gone:
            self._reach(lambda: kept.append(self._conversation.observe(name, args, result)))
        withheld = self._gone
        if kept and kept[0].error == UNCHECKABLE and result.error != UNCHECKABLE:
            withheld = "the result is too large for a guardrail to check"
        elif kept and kept[0].error == ToolError.GUARDRAIL_ERROR and kept[0].error != result.error:
            withheld = self._fault_of_last(name)
        reply: dict[str, Any] = {}
        if withheld:
            reply = {"withheld": True, "reason": withheld}
        elif kept[0] != result:
            reply = {"replaced": write_answer(body, result, kept[0])}
        self._recorder.write(
            "result",
            call=number,
            ok=result.ok,
            output=result.output,
            error=result.error,
            structured=result.structured,
            delivered="withheld" if withheld else "reduced" if reply else "whole",
        )
        return reply

    def _fault_of_last(self, name: str) -> str:
        for event in reversed(self._conversation.events):
            if event.name == name and event.observe_error:
                return f"the guardrail failed: {event.observe_error}"
        return "the guardrail failed"

    def _reach(self, ask: Callable[[], object]) -> None:
        """Ask the guardrail. If it cannot be asked, no later call runs."""
        if self._gone:
            return
        signal.setitimer(signal.ITIMER_REAL, HUNG_SECONDS)
        try:
            ask()
        except DeclarationError:
            raise
        except HungError as error:
            self._gone = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the guard fails closed
            self._gone = f"the guardrail has failed: {printable(error, limit=300)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._gone:
            self._gone += "; restart the guard to call tools again"

    def close(self) -> None:
        with suppress(Exception):
            self._conversation.close()
        self._recorder.close()
