"""Run an attack in an environment, and take its candidates."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, Protocol

from msgspec import Struct

from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig, BudgetSpentError
from tiltyard.contracts.trace import Trace
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.episode.sandbox_env import Interaction, SandboxEnv, Snapshot
from tiltyard.foundation.interrupts import Interrupted, marked_interrupts
from tiltyard.matches.comparison import NOTHING_SAID, Line, SearchSample
from tiltyard.matches.settings import MatchError
from tiltyard.matches.understanding import Listener
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import SearchStatus
from tiltyard.search.status import OnStatus, ignore_status

REPORTED_EVERY: Final = 100
"""Interactions between two status reports. With a small budget, every interaction is reported."""
LARGE_BUDGET: Final = 5_000
MAX_TAKEN: Final = 10
"""A match takes at most this many times `max_candidates`. The judge refuses each candidate over
`max_candidates` with a reason."""


class Attack(Protocol):
    """An attack algorithm: see `tiltyard.contracts.attack`."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> Sequence[AttackCandidate]: ...


def run_attack(attack: Attack, env: "PublicEnv", ruleset: Ruleset) -> tuple[list[Any], int]:
    """Run an attack, and return its candidates and the steps it spent."""
    budget = env.steps_left or 0
    config = AttackRunConfig(max_steps=budget, max_tool_hops=ruleset.play.calls_per_message)
    candidates = _take_candidates(attack, env, config, ruleset)
    return candidates, min(budget, env.steps_spent)


@marked_interrupts()
def _take_candidates(
    attack: Attack, env: AttackEnv, config: AttackRunConfig, ruleset: Ruleset
) -> list[Any]:
    try:
        found = attack.run(env, config)
        return list(islice(iter(found), MAX_TAKEN * ruleset.attack.max_candidates))
    except BudgetSpentError:
        return []
    except (GuardrailGoneError, AgentGoneError, Interrupted):
        raise
    except BaseException as error:
        raise MatchError(f"the attack failed: {type(error).__name__}: {error}") from error


class PublicEnv:
    """The part of an environment that an attack may see: no scenario, no guardrail.

    It follows the attack through its snapshots. `sample` gets every chain that the attack plays,
    and `listener` hears its messages.
    """

    def __init__(
        self,
        env: SandboxEnv,
        on_status: OnStatus = ignore_status,
        sample: SearchSample | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.__env, self.__listener = env, listener
        self.__budget, self.__on_status = env.steps_left or 0, on_status
        self.__every = REPORTED_EVERY if self.__budget > LARGE_BUDGET else 1
        self.__interactions = 0
        self.__sample, self.__line = sample, NOTHING_SAID
        self.seed = env.seed
        self.max_tool_hops = env.max_tool_hops
        self.export_trace_dict = env.export_trace_dict

    def reset(self) -> None:
        self.__env.reset()
        self.__line = NOTHING_SAID

    def snapshot(self) -> "_Snapshot":
        return _Snapshot(self.__env.snapshot(), self.__line)

    def restore(self, snapshot: "_Snapshot") -> None:
        if not isinstance(snapshot, _Snapshot):
            raise TypeError("restore takes what snapshot() returned")
        self.__env.restore(snapshot.kept)
        self.__line = snapshot.line

    def interact(self, message: str, max_tool_hops: int | None = None) -> Interaction:
        self.__interactions += 1
        if self.__interactions % self.__every == 0:
            spent = self.__budget - (self.__env.steps_left or 0)
            self.__on_status(SearchStatus(0, spent, self.__budget, self.__interactions, 0, 0))
        answer = self.__env.interact(message, max_tool_hops)
        if self.__listener is not None:
            self.__listener.hear(answer.after.message)
        if self.__sample is not None:
            self.__line = self.__line.after(answer.after, max_tool_hops)
            self.__sample.see(self.__line)
        return answer

    @property
    def steps_left(self) -> int | None:
        return self.__env.steps_left

    @property
    def steps_spent(self) -> int:
        return self.__env.steps_spent

    @property
    def trace(self) -> Trace:
        return self.__env.trace


class _Snapshot(Struct, frozen=True):
    """A snapshot of the environment, and what was said before it."""

    kept: Snapshot
    line: Line
