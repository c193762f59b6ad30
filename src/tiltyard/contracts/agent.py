"""The agent contract: what an agent sees, what it may answer, and what it declares about itself.

An agent is stateless. The episode holds its memory as a value and passes it to every call, so a
snapshot of an episode is a snapshot of its agent too.
"""

from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import Struct

from tiltyard.contracts.purse import Purse
from tiltyard.contracts.trace import Answer, Event, OpenTurn, Trace
from tiltyard.rulesets.ruleset import ModelRules
from tiltyard.world.results import Argument, Other, ToolCall
from tiltyard.world.text import Text, by_machine


class View(Struct, frozen=True, gc=False):
    """Everything an agent may base its next action on."""

    message: Text
    """The user's message of this turn."""
    last: Event | None
    """The agent's last call in this turn and its result; None at the beginning of the turn."""
    memory: Any
    """The memory that the agent returned last time, or `begin()` at the start of the episode."""
    turn: OpenTurn
    """The current turn, with the calls made so far."""
    owner: str
    """The mail address of the user the agent works for."""

    @property
    def trace(self) -> Trace:
        """The whole episode so far, the current turn included."""
        return self.turn.trace


class AgentTraits(Struct, frozen=True):
    """What an agent can do. The judge, the matches and the reports ask for these.

    An agent that declares no traits has none of them, which is always safe.
    """

    labels_causes: bool = False
    """The agent's calls name their causes (`because`, `uses`, `clause`, labelled arguments), and
    the judge believes them. Without this trait the episode drops such claims, and the judge infers
    causes. Only for agents that follow the deterministic agent's grammar: the judge replays simpler
    variants of a chain with that grammar to find its route."""
    pure: bool = False
    """The next action depends on the view alone, so an episode can drop its history and compute
    it again."""
    recorded: bool = False
    """Every exchange is kept, so a match can be replayed: see `RecordedAgent`."""
    metered: bool = False
    """The agent spends requests from a purse: see `MeteredAgent`."""


NO_TRAITS: Final = AgentTraits()


class Agent(Protocol):
    """A tool-using agent. It is called until it answers, or until it used up the turn's calls.

    The class may declare `traits = AgentTraits(...)`.
    """

    name: str

    def begin(self) -> Any:
        """Return the memory of an agent that has seen nothing."""

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Any]:
        """Return the next call, or the answer that ends the turn, and the new memory."""


class RecordedAgent(Agent, Protocol):
    """An agent with the trait `recorded`."""

    @property
    def record_digest(self) -> str:
        """A hash of all exchanges used so far. It is part of the match's digest."""


class AgentUsage(Struct, frozen=True):
    """What an agent with the trait `metered` spent in one match."""

    name: str
    server: str
    """The version of the server, if it can change the answers and is known."""
    manner: str
    """How the agent asks its model, such as `structured` or `tools`."""
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: int | None
    """In millionths of a dollar; None without a price."""
    repaired: int
    """Replies that became an action only after a repair request."""
    no_action: int
    """Turns that ended because no reply was an action."""
    refusals: int
    dropped_calls: int
    """Tool calls that came with another one in the same reply, and were not made."""


class MeteredAgent(Agent, Protocol):
    """An agent with the trait `metered`: its requests take time and money.

    The judge divides its purse among the candidates, and may judge several at the same time, each
    with an agent that has a scope and a purse of its own.
    """

    @property
    def rules(self) -> ModelRules:
        """The ruleset's bounds on requests, samples and concurrency."""

    @property
    def purse(self) -> Purse:
        """The purse that pays for the agent's requests."""

    def within(self, *names: str) -> "MeteredAgent":
        """Return the agent with another scope: it does not reuse replies from other scopes."""

    def paying_from(self, purse: Purse) -> "MeteredAgent":
        """Return the agent with another purse."""

    def usage(self) -> AgentUsage:
        """Return what the agent spent in this match, over all scopes and purses."""


class AgentGoneError(Exception):
    """The agent cannot go on, for example without its model. The match has no score."""


def traits_of(agent: object) -> AgentTraits:
    """Return the traits that an agent declares; none if the declaration is missing or invalid."""
    declared = getattr(agent, "traits", None)
    return declared if isinstance(declared, AgentTraits) else NO_TRAITS


def as_metered(agent: Agent) -> MeteredAgent | None:
    """Return the agent as a metered one, or None without that trait."""
    return cast("MeteredAgent", agent) if traits_of(agent).metered else None


def as_recorded(agent: Agent) -> RecordedAgent | None:
    """Return the agent as a recorded one, or None without that trait."""
    return cast("RecordedAgent", agent) if traits_of(agent).recorded else None


def within(agent: Agent, *names: str) -> Agent:
    """Scope a metered agent: replies from other scopes are not reused. Others have no scope."""
    metered = as_metered(agent)
    return agent if metered is None else metered.within(*names)


def without_claims(call: ToolCall) -> ToolCall:
    """Return the call without causes and authors: the judge infers them for this agent.

    The result contains valid Unicode and exact types, whatever the agent put into its call.
    """
    args = {valid_text(name): _argument(value) for name, value in call.args.items()}
    return ToolCall(valid_text(call.tool), args)


def valid_text(value: object) -> str:
    """Return a value as a plain `str` of valid Unicode."""
    string = value if isinstance(value, str) else str(value)
    # Not `string.encode`, which a subclass can override.
    return str.encode(string, "utf-8", "replace").decode()


def _argument(value: object) -> Argument:
    if value is None:
        return value
    if isinstance(value, Other):
        json: object = value.json  # Not checked: the agent may have put anything there.
        return Other(valid_text(json) if isinstance(json, str) else "null")
    if isinstance(value, Text):
        return by_machine(valid_text(value.string))
    if isinstance(value, str):
        return by_machine(valid_text(value))
    if type(value) is int and -(2**53) < value < 2**53:
        return value
    try:
        return Other(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, OverflowError, RecursionError):
        return Other("null")
