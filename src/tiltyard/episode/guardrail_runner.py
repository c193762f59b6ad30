"""The guardrail runner: asks a guardrail, and carries its state from episode to episode.

This module has the `Runner` protocol, the runner for guardrails in this process, and the base class
of guardrails in another process.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final, Protocol

from tiltyard.contracts.classic_tools import CLASSIC
from tiltyard.contracts.decision import Action, Decision, Fault
from tiltyard.contracts.guardrail import Context, Guardrail, GuardrailBase, Result
from tiltyard.contracts.trace import OpenTurn
from tiltyard.episode.guardrail_caller import GuardrailCaller
from tiltyard.episode.kept_state import State, keeper_of
from tiltyard.world.results import ToolCall, ToolResult


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


class GuardrailRunner(GuardrailCaller):
    """One guardrail instance, moved from state to state.

    `enter` puts the instance into a state, the guardrail's code then changes it, and `leave`
    returns its new state. States are values: each can be entered any number of times.
    """

    def __init__(self, guardrail: Guardrail) -> None:
        super().__init__(guardrail)
        self._keeper = keeper_of(guardrail)
        self.initial = self._keeper.initial

    def enter(self, state: State) -> None:
        self._keeper.enter(self.guardrail, state)

    def show(self, state: State) -> None:
        self._keeper.show(self.guardrail, state)

    def decide(self, call: ToolCall, turn: OpenTurn) -> Decision:
        """Ask the guardrail. Any error is a denial with the error as its reason."""
        args = call.plain_args()
        context = Context(turn, CLASSIC.about(call.tool), CLASSIC)
        decision = self.ask(call.tool, args, args.copy(), context)
        if decision.sanitized_args is None or _is_simple(decision.sanitized_args):
            return decision
        return Decision(Action.DENY, decision.reason, None, Fault.NOT_A_REDACTION)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Show the guardrail a result. Return its error, or an empty string.

        The result is delivered as it is: in `design` no guardrail can change it.
        """
        error = None if result.error is None else result.error.value
        seen = Result(result.ok, result.output.string, error, result.source.value)
        return self.show_result(call.tool, call.plain_args(), seen)[1]

    def leave(self) -> State:
        return self._keeper.leave(self.guardrail)


_SIMPLE: Final = (str, int, NoneType)


def _is_simple(args: Mapping[str, Any]) -> bool:
    # Exact types: a subclass could behave differently when it is used than when it is checked.
    return all(type(name) is str and type(value) in _SIMPLE for name, value in args.items())
