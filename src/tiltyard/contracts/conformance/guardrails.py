"""The conformance suite of guardrails."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tiltyard.contracts.classic_tools import CLASSIC
from tiltyard.contracts.conformance import declared
from tiltyard.contracts.conformance.material import (
    HOSTILE_TEXTS,
    MESSAGES,
    hostile_openings,
    scenario,
)
from tiltyard.contracts.decision import Action, Decision, Fault
from tiltyard.contracts.guardrail import Context, Guardrail, Result, check_guardrail, contract_of
from tiltyard.contracts.trace import NO_TRACE, OpenTurn, PublicEvent
from tiltyard.episode.kept_state import StateError
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.world.tools import TOOLS

_FAULTS = {
    Fault.RAISED: "raised an exception",
    Fault.NOT_A_DECISION: "did not return a valid Decision",
    Fault.CHANGED_ARGUMENTS: "changed tool_args; return Decision.sanitize(...) instead",
    Fault.NOT_A_REDACTION: "added something to the arguments; sanitize may only take away",
}


class GuardrailConformance:
    """What every guardrail must do. Override `make_guardrail`."""

    messages: tuple[str, ...] = MESSAGES
    """The user's messages to the deterministic agent; they should make your guardrail work."""

    def make_guardrail(self) -> Guardrail:
        """Return a new guardrail."""
        raise NotImplementedError("override make_guardrail(self): return a new guardrail")

    def test_it_has_the_methods_of_a_guardrail(self) -> None:
        guardrail = self.make_guardrail()
        try:
            check_guardrail(guardrail)
        except TypeError as error:
            raise AssertionError(str(error)) from None
        observe = getattr(guardrail, "observe", None)
        assert observe is None or callable(observe), "observe is optional, and must be a method"
        contract = getattr(guardrail, "contract", 1)
        assert contract == contract_of(guardrail), (
            f"contract is {contract!r}; declare it in the class, as `contract = 2`"
        )

    def test_decide_returns_a_decision(self) -> None:
        env = self._play((*self.messages, *hostile_openings()))
        for event in env.trace.events:
            fault = event.decision.fault
            assert fault is None, _faulty(event.call.tool, fault, event.decision.reason)

    def test_observe_does_not_raise(self) -> None:
        """An exception in `observe` leaves the guardrail in a half-updated state."""
        for event in self._play((*self.messages, *hostile_openings())).trace.events:
            assert not event.observe_error, (
                f"observe failed after {event.call.tool}: {event.observe_error}"
            )

    def test_decide_does_not_change_tool_args(self) -> None:
        for tool, args in _odd_calls():
            given = dict(args)
            _finished(self.make_guardrail().decide(tool, given, _context(tool)))
            assert given == args, (
                f"decide changed tool_args of {tool} from {args!r} to {given!r}; return "
                "Decision.sanitize(...) instead"
            )

    def test_it_survives_odd_calls(self) -> None:
        """A language model may call tools that do not exist, with arguments of any kind."""
        for tool, args in _odd_calls():
            try:
                decision = _finished(self.make_guardrail().decide(tool, dict(args), _context(tool)))
            except Exception as error:
                raise AssertionError(
                    f"decide({tool!r}, {args!r}, ...) raised {type(error).__name__}: {error}"
                ) from error
            assert isinstance(decision, Decision), (
                f"decide({tool!r}, ...) returned {decision!r}, not a Decision"
            )
            assert decision.action in tuple(Action), f"{decision.action!r} is not an Action"

    def test_observe_survives_odd_results(self) -> None:
        observe = getattr(self.make_guardrail(), "observe", None)
        if observe is None:
            return
        for text in HOSTILE_TEXTS:
            for error in (None, "denied"):
                result = Result(error is None, text, error, "web")
                try:
                    _finished(observe("web.open", {"id": text}, result))
                except Exception as error:
                    raise AssertionError(
                        f"observe(..., {result!r}) raised {type(error).__name__}: {error}"
                    ) from error

    def test_its_state_can_be_carried(self) -> None:
        """Every attribute must be copyable, because snapshots carry the attributes."""
        try:
            env = self._play(self.messages)
            env.restore(env.snapshot())
        except StateError as error:
            raise AssertionError(str(error)) from None

    def test_the_same_conversation_leads_to_the_same_decisions(self) -> None:
        first, second = (_decisions(self._play(self.messages)) for _ in range(2))
        _compare(first, second, "a second new guardrail in the same conversation")

    def test_restore_equals_replay(self) -> None:
        """State in globals, files or class attributes survives a restore, and fails here."""
        half = len(self.messages) // 2
        expected = _decisions(self._play(self.messages))
        env = self._play(self.messages[:half])
        before = env.snapshot()
        for message in reversed(self.messages):  # Another future, which the restore must undo.
            env.interact(message)
        env.restore(before)
        for message in self.messages[half:]:
            env.interact(message)
        _compare(expected, _decisions(env), "the guardrail after a restore")

    def test_a_reset_forgets_everything(self) -> None:
        env = self._play(self.messages)
        expected = _decisions(env)
        env.reset()
        for message in self.messages:
            env.interact(message)
        _compare(expected, _decisions(env), "the guardrail after a reset")

    def test_it_decides_calls_of_declared_tools(self) -> None:
        """The tools are unknown, and arguments are nested; contract 1 gets those as strings."""
        decisions, _ = declared.play(self.make_guardrail())
        for (tool, _), decision in zip(declared.CALLS, decisions, strict=True):
            fault = decision.fault
            assert fault is None, _faulty(tool, fault, decision.reason)

    def test_observe_reduces_results_of_declared_tools(self) -> None:
        """Contract 2 may return a reduced result: less text, fewer leaves, nothing else."""
        _, deliveries = declared.play(self.make_guardrail())
        for delivery in deliveries:
            assert delivery.fault is None, (
                f"observe failed: {delivery.error}; return None, or the result with text removed"
            )

    def test_the_same_declared_conversation_has_the_same_outcome(self) -> None:
        first, second = (declared.play(self.make_guardrail()) for _ in range(2))
        assert first == second, "a second new guardrail decided otherwise in the same conversation"

    def _play(self, messages: tuple[str, ...]) -> SandboxEnv:
        env = SandboxEnv(scenario=scenario(), guardrail=self.make_guardrail())
        for message in messages:
            env.interact(message)
        return env


def _finished(value: Any) -> Any:
    """Return a value, or what a coroutine returns."""
    if not isinstance(value, Awaitable):
        return value
    # A thread of its own: the tests around this one may run a loop, for a browser or a server.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_awaited(value))).result()


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _faulty(tool: str, fault: Fault | None, reason: str) -> str:
    return f"decide for {tool} {_FAULTS[fault] if fault else ''}: {reason}"


def _decisions(env: SandboxEnv) -> list[PublicEvent]:
    return env.trace.public_events()


def _compare(expected: list[PublicEvent], found: list[PublicEvent], who: str) -> None:
    for one, other in zip(expected, found, strict=False):
        assert (one.decision, one.reason) == (other.decision, other.reason), (
            f"{who} decided {other.decision.value!r} ({other.reason}) on call {one.index}, "
            f"{one.name}, instead of {one.decision.value!r} ({one.reason})"
        )
    assert len(expected) == len(found), f"{who} let the agent make other calls"


def _odd_calls() -> list[tuple[str, dict[str, Any]]]:
    texts = [{"path": text, "url": text, "cmd": text, "to": text} for text in HOSTILE_TEXTS]
    odd: list[dict[str, Any]] = [{}, {"path": None}, {"path": 7, "data": -1}, {"": ""}, *texts]
    return [(tool, args) for tool in (*TOOLS, "no.such.tool", "") for args in odd]


def _context(tool: str) -> Context:
    return Context(OpenTurn(NO_TRACE, "good morning", []), CLASSIC.about(tool), CLASSIC)
