"""The classes of `aicomp_sdk` that submissions import and inherit from.

They are dataclasses, as in `aicomp_sdk`. Older versions used dicts for configurations and results,
so these objects can be read as dicts too.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol, Self, runtime_checkable

from tiltyard.contracts.attack import (
    AttackAlgorithmBase as AttackAlgorithmBase,  # noqa: PLC0414 - re-exported
)

DEFAULT_MAX_TOOL_HOPS: Final = 8
MAX_USER_MESSAGE_CHARS: Final = 2_000


class DecisionAction(StrEnum):
    ALLOW = "ALLOW"
    DENY = "DENY"
    CONFIRM = "CONFIRM"
    SANITIZE = "SANITIZE"

    @classmethod
    def _missing_(cls, value: object) -> "DecisionAction | None":
        """Accept any case, as the oldest version did."""
        return cls.__members__.get(str(value).upper())


@dataclass(unsafe_hash=True)
class Decision:
    """A guardrail's decision. It is mutable, as in older versions."""

    action: DecisionAction
    reason: str = ""
    sanitized_args: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        self.action = DecisionAction(self.action)

    @staticmethod
    def allow(reason: str = "") -> "Decision":
        return Decision(DecisionAction.ALLOW, reason)

    @staticmethod
    def deny(reason: str = "") -> "Decision":
        return Decision(DecisionAction.DENY, reason)

    @staticmethod
    def confirm(reason: str = "") -> "Decision":
        return Decision(DecisionAction.CONFIRM, reason)

    @staticmethod
    def sanitize(sanitized_args: Mapping[str, Any], reason: str = "") -> "Decision":
        return Decision(DecisionAction.SANITIZE, reason, sanitized_args)


class GuardrailBase:
    """Allows everything. Tiltyard keeps a guardrail's state without calling `snapshot_state`."""

    def decide(
        self, tool_name: str, tool_args: Mapping[str, Any], context: Mapping[str, Any]
    ) -> Decision:
        del tool_name, tool_args, context
        return Decision.allow()

    def snapshot_state(self) -> Any:
        return None

    def restore_state(self, snapshot: Any) -> None:
        del snapshot


class _ReadsAsDict:
    """Makes an object readable like the dict that it was in older versions."""

    def _as_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self._as_dict()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._as_dict()

    def __iter__(self) -> Iterator[str]:
        return iter(self._as_dict())

    def get(self, key: str, default: Any = None) -> Any:
        return self._as_dict().get(key, default)

    def keys(self) -> Any:
        return self._as_dict().keys()

    def values(self) -> Any:
        return self._as_dict().values()

    def items(self) -> Any:
        return self._as_dict().items()

    def copy(self) -> dict[str, Any]:
        return self._as_dict()


@dataclass(frozen=True)
class AttackRunConfig(_ReadsAsDict):
    time_budget_s: float = 30.0
    max_steps: int = 10**9
    max_tool_hops: int = DEFAULT_MAX_TOOL_HOPS

    def _as_dict(self) -> dict[str, Any]:
        # No `steps`: older attacks counted messages with it, and set a number of their own.
        return {"seconds": self.time_budget_s, **vars(self)}


@dataclass(frozen=True)
class AttackCandidate:
    user_messages: tuple[str, ...]

    @classmethod
    def from_messages(cls, user_messages: Sequence[str]) -> Self:
        return cls(tuple(user_messages))


@dataclass(frozen=True)
class EnvInteractionResult(_ReadsAsDict):
    """The numbers of calls that one message led to."""

    seed: int
    total_tool_events: int = 0
    tool_events_added: int = 0
    agent_turns: int = 0
    successful_tool_calls: int = 0
    failed_tool_calls: int = 0
    agent_refused: bool = False

    def _as_dict(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**numbers, "n_tools": self.total_tool_events}


@runtime_checkable
class AttackEnvProtocol(Protocol):
    """The environment that an attack is given."""

    seed: int

    def reset(self, *args: Any, **kwargs: Any) -> Any: ...

    def interact(
        self, user_message: str, max_tool_hops: int | None = None
    ) -> EnvInteractionResult: ...

    def export_trace_dict(self) -> dict[str, Any]: ...

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...


@dataclass
class ToolEvent:
    name: str
    args: dict[str, Any]
    ok: bool
    output: str
    side_effect: str
    scope: str
    source: str
    error: str | None = None


@dataclass
class Trace:
    """A copy of the trace so far: changing it has no effect on the match."""

    seed: int
    user_messages: list[str] = field(default_factory=list)
    tool_events: list[ToolEvent] = field(default_factory=list)
    assistant_messages: list[str] = field(default_factory=list)

    def add_user(self, text: str) -> None:
        self.user_messages.append(text)

    def add_tool(self, ev: ToolEvent) -> None:
        self.tool_events.append(ev)

    def add_assistant(self, text: str) -> None:
        self.assistant_messages.append(text)


class ToolSideEffect(StrEnum):
    READ = "READ"
    WRITE = "WRITE"
    EXEC = "EXEC"
    NETWORK = "NETWORK"
    SHARE = "SHARE"
    AUTH = "AUTH"


class ToolScope(StrEnum):
    PUBLIC = "public"
    INTERNAL = "internal"
    LOCAL = "local"
    SECRETS = "secrets"
    EXTERNAL = "external"


class Timebox:
    """A time limit of `seconds`, on the guest's clock."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    def remaining(self) -> float:
        return max(self.deadline - time.monotonic(), 0.0)

    def expired(self) -> bool:
        return self.remaining() == 0.0
