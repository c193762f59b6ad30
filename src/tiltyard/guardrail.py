"""The guardrail contract, and the runner that keeps a guardrail's state as a value.

An author writes a plain class and keeps state in plain attributes. The runner carries that state
through snapshots and restores without the author's help. It copies what changed and nothing
else, and it turns everything that can go wrong inside a guardrail into a denial.
"""

import copy
import pickle
from collections.abc import Iterator, Mapping
from enum import Enum
from re import Pattern
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from tiltyard.decision import ALLOWED, Action, Decision, Fault
from tiltyard.trace import PublicEvent, Trace
from tiltyard.world.results import ToolCall, ToolResult
from tiltyard.world.tools import TOOLS, Tool

RECENT: Final = 5
MAX_REASON_CHARS: Final = 500
SEED_SHOWN: Final = 0
"""`context["seed"]`: there because older guardrails read it, constant so that it says nothing."""


@runtime_checkable
class Guardrail(Protocol):
    """What a guardrail must have. `observe` is optional."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: "Context") -> Decision:
        """Say whether this call may run."""


class GuardrailBase:
    """A guardrail that allows everything: a base to inherit from, if you like."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: "Context") -> Decision:
        """Say whether this call may run."""
        del tool_name, tool_args, context
        return Decision.allow()


class Result(Struct, frozen=True, gc=False):
    """What `observe` is shown of a call that ran."""

    ok: bool
    output: str
    error: str | None
    source: str


class Context(Struct, frozen=True, eq=False, gc=False):
    """What a deployed guardrail would know: the conversation so far, no labels, no seed.

    Every field is an attribute and a key: `context.last_user` and `context["last_user"]`.
    Nothing is computed before it is asked for.
    """

    _trace: Trace
    _tool: Tool | None

    @property
    def user_messages(self) -> list[str]:
        """All messages of the user, oldest first."""
        return self._trace.user_messages

    @property
    def last_user(self) -> str:
        """The message being worked on."""
        return self._trace.message

    @property
    def events(self) -> list[PublicEvent]:
        """All calls before this one, with decisions, outputs and source kinds, oldest first."""
        return self._trace.public_events()

    @property
    def recent_sources(self) -> list[str]:
        """Source kinds (web, email, file, tool) of the last five calls."""
        return [event.result.source.value for event in self._trace.last_events(RECENT)]

    @property
    def recent_tools(self) -> list[str]:
        """Names of the last five tools."""
        return [event.call.tool for event in self._trace.last_events(RECENT)]

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

    def __reduce__(self) -> Any:
        raise TypeError("a guardrail cannot keep its context: copy what you need out of it")


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


class GuardrailStateError(Exception):
    """A guardrail keeps something that cannot be copied."""


class State(Struct, frozen=True, eq=False):
    """A guardrail's attributes at one moment."""

    names: tuple[str, ...] = ()
    plain: dict[str, Any] = {}
    """Attributes that cannot change in place."""
    packed: bytes = b""
    """All others together, so that two names for one list stay two names for one list."""
    copied: dict[str, Any] | None = None
    """Instead of `packed`, what only a deep copy can carry."""

    def attributes(self) -> dict[str, Any]:
        """Return the attributes as fresh objects."""
        if self.copied is not None:
            moving = copy.deepcopy(self.copied)
        else:
            # Our own bytes, made a moment ago in this process from the author's own objects.
            moving = pickle.loads(self.packed) if self.packed else {}  # noqa: S301
        if not moving:
            return dict(self.plain)
        plain = self.plain
        return {name: plain[name] if name in plain else moving[name] for name in self.names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self is other or self.attributes() == other.attributes()

    def __hash__(self) -> int:
        return hash(self.names)


STATELESS: Final = State()


class GuardrailRunner:
    """One guardrail instance, moved from state to state.

    Between `enter` and `leave` the instance is in the state entered and changes as its author
    wrote; `leave` returns what it became. States are values: any of them may be entered again.
    """

    def __init__(self, guardrail: Guardrail) -> None:
        self.guardrail = guardrail
        observe = getattr(guardrail, "observe", None)
        self._observe = observe if callable(observe) else None
        self._slots = _slot_names(type(guardrail))
        self._current = STATELESS
        self.initial = self._current = self.leave()

    def enter(self, state: State) -> None:
        if state is self._current:
            return
        self._install(state.attributes())
        self._current = state

    def decide(self, call: ToolCall, trace: Trace) -> Decision:
        """Ask the guardrail; whatever goes wrong is a denial that says so."""
        args = call.plain_args()
        given = args.copy()
        try:
            decision = self.guardrail.decide(call.tool, given, Context(trace, TOOLS.get(call.tool)))
            if given != args:
                return Decision(Action.DENY, "", None, Fault.CHANGED_ARGUMENTS)
            return ALLOWED if decision is ALLOWED else _checked(decision)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code: anything can come
            return Decision(Action.DENY, _describe(error), None, Fault.RAISED)

    def observe(self, call: ToolCall, result: ToolResult) -> str:
        """Show the guardrail a result; return what went wrong in it, or nothing."""
        if self._observe is None:
            return ""
        error = None if result.error is None else result.error.value
        seen = Result(result.ok, result.output.string, error, result.source.value)
        try:
            self._observe(call.tool, call.plain_args(), seen)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code: anything can come
            return _describe(error)
        return ""

    def leave(self) -> State:
        """Return the state the instance is in now; the same object if nothing changed."""
        attributes = self._attributes()
        if not attributes:
            self._current = STATELESS
            return STATELESS
        before = self._current
        plain = {name: value for name, value in attributes.items() if _cannot_change(value)}
        same = _same_objects(plain, before.plain)
        if len(plain) == len(attributes):
            if not (same and not before.packed and before.copied is None):
                self._current = State(tuple(attributes), plain)
            return self._current
        moving = {name: value for name, value in attributes.items() if name not in plain}
        try:
            packed = pickle.dumps(moving, pickle.HIGHEST_PROTOCOL)
        except Exception:  # noqa: BLE001 - pickling runs the author's code: anything can come
            self._current = State(tuple(attributes), plain, b"", _deep_copy(moving))
            return self._current
        if not (same and packed == before.packed and tuple(attributes) == before.names):
            self._current = State(tuple(attributes), plain, packed)
        if b"\x8f" in packed or b"\x91" in packed:
            # A set's order depends on how it grew. Going on with the copy, as a restore would,
            # makes an episode that went on and one that was restored the same to the last bit.
            self._install(self._current.attributes())
        return self._current

    def _attributes(self) -> dict[str, Any]:
        found = getattr(self.guardrail, "__dict__", None)
        if not self._slots:
            return found if found is not None else {}
        slots = {n: getattr(self.guardrail, n) for n in self._slots if hasattr(self.guardrail, n)}
        return {**(found or {}), **slots}

    def _install(self, attributes: dict[str, Any]) -> None:
        own = getattr(self.guardrail, "__dict__", None)
        if own is not None:
            own.clear()
            own.update((n, v) for n, v in attributes.items() if n not in self._slots)
        for name in self._slots:
            if name in attributes:
                object.__setattr__(self.guardrail, name, attributes[name])
            elif hasattr(self.guardrail, name):
                object.__delattr__(self.guardrail, name)


_UNCHANGING: Final = frozenset(
    (
        int,
        str,
        float,
        bool,
        bytes,
        complex,
        NoneType,
        Pattern,
        FunctionType,
        BuiltinFunctionType,
        ModuleType,
        type,
        range,
    )
)


def _cannot_change(value: object) -> bool:
    """Tell whether a value is safe to share between states."""
    kind = type(value)
    if kind in _UNCHANGING:
        return True
    if kind is tuple or kind is frozenset:
        return all(_cannot_change(item) for item in value)  # type: ignore[attr-defined]
    return isinstance(value, Enum)


def _same_objects(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return len(new) == len(old) and all(
        name in old and old[name] is value for name, value in new.items()
    )


def _deep_copy(moving: dict[str, Any]) -> dict[str, Any]:
    try:
        return copy.deepcopy(moving)
    except Exception as error:  # noqa: BLE001 - copying runs the author's code: anything can come
        names = ", ".join(f"{name} ({type(value).__name__})" for name, value in moving.items())
        raise GuardrailStateError(
            f"the guardrail keeps something that cannot be copied ({error}); among: {names}"
        ) from None


def _slot_names(cls: type) -> tuple[str, ...]:
    names: list[str] = []
    for owner in cls.__mro__:
        slots = owner.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _checked(decision: object) -> Decision:
    """Return a decision that can be believed: right type, right fields, no claimed fault."""
    if not isinstance(decision, Decision):
        reason = f"decide returned {type(decision).__name__}, not a Decision"
        return Decision(Action.DENY, reason, None, Fault.NOT_A_DECISION)
    try:
        action = Action(str(decision.action).lower())
    except ValueError:
        reason = f"unknown action {str(decision.action)[:50]!r}"
        return Decision(Action.DENY, _printable(reason), None, Fault.NOT_A_DECISION)
    sanitized = decision.sanitized_args if action is Action.SANITIZE else None
    if action is Action.SANITIZE and not isinstance(sanitized, Mapping):
        reason = "sanitize without arguments"
        return Decision(Action.DENY, reason, None, Fault.NOT_A_DECISION)
    copied = None if sanitized is None else dict(sanitized)
    return Decision(action, _printable(str(decision.reason)), copied)


def _describe(error: BaseException) -> str:
    try:
        return _printable(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - even an exception's text is the author's code
        return _printable(type(error).__name__)


def _printable(reason: str) -> str:
    """Cut a stranger's words to size and make them valid Unicode."""
    return reason[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8")
