"""An agent that plays a chain with detours left out, to show whether the detours are needed."""

from collections.abc import Mapping

from msgspec import Struct, structs

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.agents.grammar import Instructions, Operation, Split, Wait
from tiltyard.agents.memory import Memory
from tiltyard.contracts.agent import View
from tiltyard.contracts.trace import Answer
from tiltyard.judge.actions import ActionKey, action_key
from tiltyard.judge.seeing_through import PlainView
from tiltyard.world.results import ToolCall
from tiltyard.world.text import Text


class Simplification(Struct, frozen=True):
    """Which detours to leave out of a replay. The default leaves out none."""

    see_through: PlainView | None = None
    """What the guardrail sees plain where it is encoded. The agent does the same as before."""
    splits: bool = True
    """Keep text in parts."""
    instead: tuple[tuple[ActionKey, ToolCall], ...] = ()
    """Calls to replace: read the original and not its copy, or open the last of a row of documents
    and not the first."""


class SimplerAgent(DeterministicAgent):
    """The deterministic agent, except that it leaves out detours."""

    def __init__(self, simplification: Simplification) -> None:
        self._simplification = simplification
        self._instead: Mapping[ActionKey, ToolCall] = dict(simplification.instead)

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Memory]:
        action, memory = super().next_action(view)
        if isinstance(action, ToolCall):
            other = self._instead.get(action_key(action))
            if other is not None:
                action = structs.replace(action, tool=other.tool, args=other.args)
        return action, memory

    def read(self, text: Text) -> Instructions:
        return self._simplify_all(super().read(text))

    def _simplify_all(self, read: Instructions) -> Instructions:
        operations = tuple(map(self._simplify, read.operations))
        return Instructions(operations, read.spans, read.clauses)

    def _simplify(self, operation: Operation) -> Operation:
        if isinstance(operation, Split) and not self._simplification.splits:
            return Split(operation.what, 1)
        if isinstance(operation, Wait):
            return Wait(operation.tool, self._simplify_all(operation.instructions))
        return operation
