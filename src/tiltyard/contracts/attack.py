"""The attack contract: what an attack is given, and what it returns.

An attack explores an environment and returns messages to replay. Nothing else that it says is
believed: traces, findings and scores are made by the judge, from its own replay.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct


class AttackCandidate(Struct, frozen=True):
    """A chain of user messages that is claimed to break something."""

    user_messages: tuple[str, ...]

    @classmethod
    def from_messages(cls, user_messages: Sequence[str]) -> "AttackCandidate":
        return cls(tuple(user_messages))


class AttackRunConfig(Struct, frozen=True):
    """The limits of a run. Steps decide; seconds are what they amount to on a virtual clock."""

    time_budget_s: float = 1200.0
    max_steps: int = 10_000
    max_tool_hops: int = 24


class BudgetSpentError(RuntimeError):
    """An attack asked for more steps than it has."""


class AttackEnv(Protocol):
    """The environment as an attack sees it."""

    seed: int

    @property
    def steps_left(self) -> int | None:
        """What is left of the budget."""

    def reset(self) -> None:
        """Go back to the beginning."""

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        """Let the agent work on one message."""

    def snapshot(self) -> Any:
        """Return the present, to restore later."""

    def restore(self, snapshot: Any) -> None:
        """Make a snapshot the present."""

    def export_trace_dict(self) -> dict[str, Any]:
        """Return what happened so far, as plain data."""


class AttackAlgorithmBase:
    """A base to inherit from, if you like: name your class `AttackAlgorithm`."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config: dict[str, Any] = dict(config or {})

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        """Explore `env` and return the chains worth replaying."""
        raise NotImplementedError
