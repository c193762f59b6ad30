"""The agent contract: what an agent sees, and what it may answer.

An agent is stateless. What it keeps in mind is a value that the episode holds and hands back, so
a snapshot of an episode is a snapshot of its agent too.
"""

from typing import Any, Protocol

from msgspec import Struct

from tiltyard.contracts.trace import Answer, Event, OpenTurn, Trace
from tiltyard.world.results import ToolCall
from tiltyard.world.text import Text


class View(Struct, frozen=True, gc=False):
    """Everything an agent may base its next action on."""

    message: Text
    """The user's message of this turn."""
    last: Event | None
    """What became of the agent's last call in this turn; None at the beginning of the turn."""
    memory: Any
    """What the agent returned last time, or `begin()` at the start of the episode."""
    turn: OpenTurn
    """The turn as far as it has come."""
    owner: str
    """The mail address of the user whom the agent works for."""

    @property
    def trace(self) -> Trace:
        """Everything so far."""
        return self.turn.trace


class Agent(Protocol):
    """A tool-using agent. Called until it answers, or until the turn's calls are used up."""

    name: str

    def begin(self) -> Any:
        """Return the memory of an agent that has seen nothing."""

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Any]:
        """Return the next call, or the answer that ends the turn, and the new memory."""


class AgentGoneError(Exception):
    """An agent that cannot go on, such as a model that does not answer: the match has no score."""


class OutOfRequestsError(Exception):
    """An agent that may not be asked any more: what it was asked for is left undone."""


def within(agent: Agent, *names: str) -> Agent:
    """Return the agent for one part of the work: what it was told elsewhere has no part in it."""
    inner: Agent = agent.within(*names) if hasattr(agent, "within") else agent
    return inner


def is_pure(agent: Agent) -> bool:
    """Tell whether an agent says that its next action depends on its view and on nothing else."""
    return getattr(agent, "pure", False) is True
