"""The guardrail contract: what a guardrail must have, and what it sees.

A guardrail is a plain class with state in plain attributes. `tiltyard.episode` carries this state
through snapshots and restores.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

from tiltyard.contracts.asking import Ask, no_model
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.policy import Policy
from tiltyard.contracts.trace import PublicEvent

RECENT: Final = 5
SEED_SHOWN: Final = 0
"""`context["seed"]`: older guardrails read it; it is constant, so it reveals nothing."""

UNKNOWN: Final = "UNKNOWN"
"""The side effect of a tool whose declaration does not tell it."""


@runtime_checkable
class Guardrail(Protocol):
    """What a guardrail must have. `observe(tool_name, tool_args, result)` is optional.

    A class with `contract = 2` gets arguments as JSON values, and may return a reduced result from
    `observe`. Both methods may be coroutines.
    """

    def decide(
        self, tool_name: str, tool_args: dict[str, Any], context: "Context"
    ) -> Decision | Awaitable[Decision]:
        """Decide whether this call may run."""


MakeGuardrail = Callable[[], Guardrail]
"""Makes a fresh guardrail: a class, or a function without arguments."""


class GuardrailBase:
    """An optional base class, which allows everything."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: "Context") -> Decision:
        """Decide whether this call may run."""
        del tool_name, tool_args, context
        return Decision.allow()


class Passage(Struct, frozen=True, gc=False):
    """Who wrote a part of a result."""

    path: str
    """A JSON pointer into the content, or `#char=START,END` for characters of `output`; empty for
    the whole output."""
    author: str = ""
    """An address, a name or an id, if the source knows the author."""
    by: str = "unknown"
    """`owner`, `person`, `system` or `unknown`."""
    known: bool = True
    """False if this is inferred."""
    awaits: int | None = None
    """The index of the call that waits for a code in this part."""


class Result(Struct, frozen=True, gc=False):
    """The result of a call, as `observe` sees it."""

    ok: bool
    output: str
    error: str | None
    source: str
    structured: Any = None
    """The same content as JSON, if the tool returns it."""
    passages: tuple[Passage, ...] = ()
    """The authors of parts of the result, where the source knows them."""


class Past(Protocol):
    """The conversation before a call, as a context shows it."""

    @property
    def message(self) -> str: ...

    @property
    def user_messages(self) -> list[str]: ...

    def public_events(self) -> list[PublicEvent]: ...

    def last_sources(self, count: int) -> list[str]: ...

    def last_tools(self, count: int) -> list[str]: ...


class ToolFacts(Struct, frozen=True):
    """What a context says about one tool."""

    side_effect: str
    scope: str
    declaration: Declaration | None = None


class Setting(Struct, frozen=True):
    """The tools and the policy of a conversation."""

    tools: tuple[Declaration, ...]
    policy: Policy
    facts: dict[str, ToolFacts]
    """By the name of the tool."""
    undeclared: ToolFacts = ToolFacts(UNKNOWN, UNKNOWN.lower())
    """What a context says about all other tools."""

    def about(self, name: str) -> ToolFacts:
        return self.facts.get(name, self.undeclared)


def setting_of(tools: Sequence[Declaration], policy: Policy) -> Setting:
    """Return the setting of a conversation over declared tools."""
    return Setting(tuple(tools), policy, {one.name: _facts(one) for one in tools})


def _facts(tool: Declaration) -> ToolFacts:
    """Derive the fields of contract 1. A hint that the operator does not trust says nothing."""
    hints = tool.hints
    if not hints.trusted:
        return ToolFacts(UNKNOWN, UNKNOWN.lower(), tool)
    reads = hints.read_only is True and hints.destructive is not True
    scope = {True: "external", False: "local", None: UNKNOWN.lower()}[hints.open_world]
    return ToolFacts("READ" if reads else UNKNOWN, scope, tool)


class Context(Struct, frozen=True, eq=False, gc=False):
    """What a deployed guardrail would know: the conversation so far, without labels and seed.

    The eight fields of contract 1 are attributes and keys: `context.last_user` and
    `context["last_user"]`. `tool`, `tools` and `policy` are attributes only. Fields are computed
    when they are read.
    """

    _past: Past
    _about: ToolFacts
    _setting: Setting
    _ask: Ask = no_model

    @property
    def tool(self) -> Declaration | None:
        """The declaration of this tool; None if no tool of this name is declared."""
        return self._about.declaration

    @property
    def tools(self) -> tuple[Declaration, ...]:
        """The declarations of all tools that the agent has."""
        return self._setting.tools

    @property
    def policy(self) -> Policy:
        """What the operator configured."""
        return self._setting.policy

    @property
    def user_messages(self) -> list[str]:
        """All messages of the user, oldest first."""
        return self._past.user_messages

    @property
    def last_user(self) -> str:
        """The user's current message."""
        return self._past.message

    @property
    def events(self) -> list[PublicEvent]:
        """All calls before this one, with decisions, outputs and source kinds, oldest first."""
        return self._past.public_events()

    @property
    def recent_sources(self) -> list[str]:
        """Source kinds (web, email, file, tool) of the last five calls."""
        return self._past.last_sources(RECENT)

    @property
    def recent_tools(self) -> list[str]:
        """Names of the last five tools."""
        return self._past.last_tools(RECENT)

    @property
    def side_effect(self) -> str:
        """READ, NETWORK, WRITE, EXEC or SHARE; UNKNOWN if the declaration does not tell."""
        return self._about.side_effect

    @property
    def scope(self) -> str:
        """How far the tool reaches: public, local or external; or unknown."""
        return self._about.scope

    @property
    def seed(self) -> int:
        return SEED_SHOWN

    def ask(self, question: str, schema: dict[str, Any]) -> Any:
        """Ask the operator's language model, and return a JSON value that follows `schema`.

        Raise an AskError if there is no model, no budget, no answer in time, or a wrong answer.
        """
        return self._ask(question, schema)

    def __getitem__(self, key: str) -> Any:
        if key in _CONTEXT_KEYS:
            return getattr(self, key)
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key) if key in _CONTEXT_KEYS else default

    def keys(self) -> tuple[str, ...]:
        return _CONTEXT_KEYS

    def values(self) -> list[Any]:
        return [getattr(self, key) for key in _CONTEXT_KEYS]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, getattr(self, key)) for key in _CONTEXT_KEYS]

    def __contains__(self, key: object) -> bool:
        return key in _CONTEXT_KEYS

    def __iter__(self) -> Iterator[str]:
        return iter(_CONTEXT_KEYS)

    def __len__(self) -> int:
        return len(_CONTEXT_KEYS)

    def __repr__(self) -> str:
        return f"<Context: {self.side_effect} {self.scope}, {len(self.user_messages)} messages>"

    def __reduce__(self) -> Any:
        raise TypeError("a guardrail cannot keep its context: copy the fields that you need")


Mapping.register(Context)

_CONTEXT_KEYS: Final = (
    "user_messages",
    "last_user",
    "events",
    "recent_sources",
    "recent_tools",
    "side_effect",
    "scope",
    "seed",
)


Contract = Literal[1, 2]


def contract_of(guardrail: object) -> Contract:
    """Return the contract that a guardrail's class declares; 1 without a declaration."""
    declared = getattr(type(guardrail), "contract", 1)
    return 2 if type(declared) is int and declared == 2 else 1


def check_guardrail(guardrail: object) -> None:
    """Raise a TypeError with advice if an object cannot be a guardrail."""
    if isinstance(guardrail, type):
        name = guardrail.__name__
        raise TypeError(f"guardrail is the class {name}; pass an object: {name}()")
    decide = getattr(guardrail, "decide", None)
    if not callable(decide):
        raise TypeError(f"guardrail has no `decide` method: {guardrail!r}")
    contract = getattr(type(guardrail), "contract", 1)
    if type(contract) is int and contract not in (1, 2):
        raise TypeError(f"guardrail declares contract = {contract}; this version has 1 and 2")
    try:
        signature(decide).bind("tool_name", {}, None)
    except TypeError:
        raise TypeError(
            "decide must take (self, tool_name, tool_args, context); "
            f"this one takes {signature(decide)}"
        ) from None
    except ValueError:
        pass  # Built-in callables may hide their signature; a wrong one fails when it is called.
