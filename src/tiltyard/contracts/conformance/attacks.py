"""The conformance suite of attacks."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig, BudgetSpentError
from tiltyard.contracts.conformance.material import scenario
from tiltyard.contracts.trace import PublicEvent
from tiltyard.episode.sandbox_env import SandboxEnv, Snapshot
from tiltyard.judge.candidates import check_candidates
from tiltyard.rulesets.ruleset import load_ruleset

PATIENCE: Final = 100
"""Calls of `interact` that an attack may make after its budget is spent."""
_PUBLIC: Final = (
    "seed, steps_left, max_tool_hops, trace, reset, interact, snapshot, restore, export_trace_dict"
)
INTERACTION: Final = (
    "seed",
    "answer",
    "events",
    "total_tool_events",
    "steps",
    "tool_events_added",
    "successful_tool_calls",
    "failed_tool_calls",
    "agent_refused",
)
"""What a jailed attack can read of the result of `interact`."""
TRACE: Final = ("public_events", "user_messages", "answers")
"""What a jailed attack can read of `env.trace`, beside iterating over it."""


class _Attack(Protocol):
    def run(self, env: AttackEnv, config: AttackRunConfig) -> Sequence[AttackCandidate]: ...


class AttackConformance:
    """What every attack must do. Override `make_attack`."""

    steps: int = 300
    """The budget of the tests. Raise it if your attack finds nothing with so few steps."""

    def make_attack(self) -> _Attack:
        """Return a new attack."""
        raise NotImplementedError("override make_attack(self): return a new attack")

    def test_it_has_a_run_method(self) -> None:
        attack = self.make_attack()
        assert not isinstance(attack, type), "make_attack must return an object, not a class"
        assert callable(getattr(attack, "run", None)), "the attack has no method run(env, config)"

    def test_the_judge_accepts_every_candidate(self) -> None:
        found, _ = self._run(self.steps)
        admitted, refused = check_candidates(found, load_ruleset().attack)
        for one in refused:
            raise AssertionError(f"the judge refuses candidate {one.index}: {one.reason}")
        assert len(admitted) == len(found)

    def test_it_stops_when_the_budget_is_spent(self) -> None:
        """`interact` raises BudgetSpentError when no steps are left: return what you have."""
        for steps in (1, 2, 10, self.steps):
            _, env = self._run(steps)
            assert env.late <= PATIENCE, (
                f"with a budget of {steps} steps, the attack called interact {env.late} times "
                "after BudgetSpentError; return the candidates when it is raised"
            )

    def test_the_same_world_gives_the_same_candidates(self) -> None:
        first, second = self._run(self.steps), self._run(self.steps)
        assert first[0] == second[0], (
            "two new attacks in the same world returned different candidates; draw random numbers "
            "from a generator with a fixed seed, and do not rely on the order of sets"
        )
        spent = [env.spent for _, env in (first, second)]
        assert spent[0] == spent[1], (
            f"two new attacks in the same world spent {spent[0]} and {spent[1]} steps"
        )

    def test_one_object_can_run_twice(self) -> None:
        """An official match runs the attack again, and both runs must return the same."""
        attack = self.make_attack()
        first, second = (self._run(self.steps, attack)[0] for _ in range(2))
        assert first == second, "the second run of one attack object returned other candidates"

    def _run(self, steps: int, attack: _Attack | None = None) -> tuple[list[Any], "_PublicEnv"]:
        """Run an attack in a public environment, and return its candidates as plain chains."""
        env = _PublicEnv(steps)
        attack = self.make_attack() if attack is None else attack
        try:
            found = attack.run(env, AttackRunConfig(max_steps=steps))
        except BudgetSpentError:
            raise AssertionError(
                f"with a budget of {steps} steps, run raised BudgetSpentError, and the candidates "
                "are lost; catch it and return what you have"
            ) from None
        assert isinstance(found, list | tuple), (
            f"run returned {type(found).__name__}; expected a list of AttackCandidate"
        )
        chains = [getattr(one, "user_messages", one) for one in found]
        return [tuple(one) if isinstance(one, list | tuple) else one for one in chains], env


class _Token:
    """A snapshot whose content the attack cannot read."""

    __slots__ = ("__weakref__",)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the attack reads snapshot.{name}; a snapshot is only for restore()")


class _Public:
    """Shows the public attributes of an object: labels, causes and effects are the judge's."""

    def __init__(self, name: str, hidden: Any, public: tuple[str, ...]) -> None:
        self.__dict__.update({each: getattr(hidden, each) for each in public})
        self.__name, self.__public = name, public

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(
            f"the attack uses {self.__name}.{name}, which a jailed attack does not have; it has "
            f"{', '.join(self.__public)}"
        )


class _PublicTrace(_Public):
    def __iter__(self) -> Iterator[PublicEvent]:
        return iter(self.public_events())


class _PublicEnv:
    """An environment that has what a jailed attack gets, and fails on everything else."""

    def __init__(self, steps: int) -> None:
        self.__env = SandboxEnv(scenario=scenario(), max_steps=steps)
        self.__snapshots: dict[_Token, Snapshot] = {}
        self.late = 0
        """Calls of `interact` after the budget was spent."""
        self.seed = self.__env.seed
        self.max_tool_hops = self.__env.max_tool_hops

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(
            f"the attack uses env.{name}, which a jailed attack does not have; it has {_PUBLIC}"
        )

    @property
    def spent(self) -> int:
        return self.__env.steps_spent

    @property
    def steps_left(self) -> int | None:
        return self.__env.steps_left

    @property
    def trace(self) -> Any:
        return _PublicTrace("env.trace", self.__env.trace, TRACE)

    def reset(self) -> None:
        self.__env.reset()

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        self.late += self.__env.steps_left == 0
        assert self.late <= 10 * PATIENCE, "the attack does not stop when its budget is spent"
        done = self.__env.interact(message, max_tool_hops)
        return _Public("interact(...)", done, INTERACTION)

    def snapshot(self) -> _Token:
        token = _Token()
        self.__snapshots[token] = self.__env.snapshot()
        return token

    def restore(self, snapshot: _Token) -> None:
        assert snapshot in self.__snapshots, "restore takes what snapshot() of this env returned"
        self.__env.restore(self.__snapshots[snapshot])

    def export_trace_dict(self) -> dict[str, Any]:
        return self.__env.export_trace_dict()
