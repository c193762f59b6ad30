"""The guardrail contract: what a guardrail must have, and what it sees.

A guardrail is a plain class with state in plain attributes. `tiltyard.episode` carries this state
through snapshots and restores.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.trace import OpenTurn, PublicEvent
from tiltyard.world.tools import Tool

RECENT: Final = 5
SEED_SHOWN: Final = 0
"""`context["seed"]`: older guardrails read it; it is constant, so it reveals nothing."""


@runtime_checkable
class Guardrail(Protocol):
    """What a guardrail must have. `observe(tool_name, tool_args, result)` is optional."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: "Context") -> Decision:
        """Decide whether this call may run."""


MakeGuardrail = Callable[[], Guardrail]
"""Makes a fresh guardrail: a class, or a function without arguments."""


class GuardrailBase:
    """An optional base class, which allows everything."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: "Context") -> Decision:
        """Decide whether this call may run."""
        del tool_name, tool_args, context
        return Decision.allow()


class Result(Struct, frozen=True, gc=False):
    """The result of a call, as `observe` sees it."""

    ok: bool
    output: str
    error: str | None
    source: str


class Context(Struct, frozen=True, eq=False, gc=False):
    """What a deployed guardrail would know: the conversation so far, without labels and seed.

    Every field is an attribute and a key: `context.last_user` and `context["last_user"]`.
    Fields are computed when they are read.
    """

    _turn: OpenTurn
    _tool: Tool | None

    @property
    def user_messages(self) -> list[str]:
        """All messages of the user, oldest first."""
        return self._turn.trace.user_messages

    @property
    def last_user(self) -> str:
        """The user's current message."""
        return self._turn.message

    @property
    def events(self) -> list[PublicEvent]:
        """All calls before this one, with decisions, outputs and source kinds, oldest first."""
        return self._turn.trace.public_events()

    @property
    def recent_sources(self) -> list[str]:
        """Source kinds (web, email, file, tool) of the last five calls."""
        return [event.result.source.value for event in self._turn.trace.last_events(RECENT)]

    @property
    def recent_tools(self) -> list[str]:
        """Names of the last five tools."""
        return [event.call.tool for event in self._turn.trace.last_events(RECENT)]

    @property
    def side_effect(self) -> str:
        """READ, NETWORK, WRITE, EXEC or SHARE."""
        return "" if self._tool is None else self._tool.side_effect.value

    @property
    def scope(self) -> str:
        """How far the tool reaches: public, local or external."""
        return "" if self._tool is None else self._tool.scope.value

    @property
    def seed(self) -> int:
        return SEED_SHOWN

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
        return f"<Context: {self.side_effect} {self.scope}, {self._turn.trace!r}>"

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


def check_guardrail(guardrail: object) -> None:
    """Raise a TypeError with advice if an object cannot be a guardrail."""
    if isinstance(guardrail, type):
        name = guardrail.__name__
        raise TypeError(f"guardrail is the class {name}; pass an object: {name}()")
    decide = getattr(guardrail, "decide", None)
    if not callable(decide):
        raise TypeError(f"guardrail has no `decide` method: {guardrail!r}")
    try:
        signature(decide).bind("tool_name", {}, None)
    except TypeError:
        raise TypeError(
            "decide must take (self, tool_name, tool_args, context); "
            f"this one takes {signature(decide)}"
        ) from None
    except ValueError:
        pass  # Built-in callables may hide their signature; a wrong one fails when it is called.
