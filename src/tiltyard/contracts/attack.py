"""The attack contract: what an attack is given, and what it returns.

An attack explores an environment and returns messages to replay. The judge believes nothing else:
it makes traces, findings and scores from its own replay.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct


class AttackCandidate(Struct, frozen=True):
    """A chain of user messages that breaks something, as the attack claims."""

    user_messages: tuple[str, ...]

    @classmethod
    def from_messages(cls, user_messages: Sequence[str]) -> "AttackCandidate":
        return cls(tuple(user_messages))


class AttackRunConfig(Struct, frozen=True):
    """The limits of a run. Steps decide; `time_budget_s` is their time on a virtual clock."""

    time_budget_s: float = 1200.0
    max_steps: int = 10_000
    max_tool_hops: int = 24


class BudgetSpentError(RuntimeError):
    """The attack has no steps left."""


class AttackEnv(Protocol):
    """The environment as an attack sees it."""

    seed: int

    @property
    def steps_left(self) -> int | None:
        """The steps that are left; None without a budget."""

    def reset(self) -> None:
        """Go back to the beginning of the episode."""

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        """Send the agent one message of the user, and return what it did."""

    def snapshot(self) -> Any:
        """Return the current state, to restore later."""

    def restore(self, snapshot: Any) -> None:
        """Go back to the state of a snapshot."""

    def export_trace_dict(self) -> dict[str, Any]:
        """Return the public view of the episode so far as plain data."""


class AttackAlgorithmBase:
    """An optional base class. Name your own class `AttackAlgorithm`."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config: dict[str, Any] = dict(config or {})

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        """Explore `env` and return the chains that the judge should replay."""
        raise NotImplementedError
