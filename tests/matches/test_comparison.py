"""The comparison of a search with fresh guardrails: every decision, of every opponent's search."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from small_runs import small_rules
from tiltyard import AttackCandidate, AttackRunConfig, Context, Decision, GuardrailBase
from tiltyard.attacks import ATTACK_LADDER
from tiltyard.contracts.attack import AttackEnv
from tiltyard.matches.attack_run import Attack
from tiltyard.matches.comparison import SAMPLED, Line, SearchSample, Turn
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.world.generate import generate

SETTINGS: Final = MatchSettings(generate(123), small_rules(300))


class Counting(GuardrailBase):
    """Counts calls where no snapshot reaches, and changes from the 25th call on."""

    calls = 0
    later = Decision.deny("so many calls")

    def __init__(self) -> None:
        type(self).calls = 0

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, context
        type(self).calls += 1
        if self.calls < 25:
            return Decision.allow()
        if self.later.action == "sanitize":
            return Decision.sanitize({**tool_args, **dict.fromkeys(tool_args, "")})
        return self.later


class CountingToSanitize(Counting):
    later = Decision.sanitize({})


class Steady(GuardrailBase):
    """Decides by the conversation alone. Its reasons count all calls, which decides nothing."""

    calls = 0

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args
        type(self).calls += 1
        reason = f"call {self.calls}"
        if tool_name == "http.post" or len(context.user_messages) > 6:
            return Decision.deny(reason)
        return Decision.allow(reason)


class HopByHop:
    """Plays with a limit of calls of its own, through snapshots."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> Sequence[AttackCandidate]:
        del config
        env.interact("search howto, open the first result", 1)
        before = env.snapshot()
        for number in range(30):
            env.restore(before)
            env.interact("read email, then save it to a.txt", 1 + number % 3)
            env.interact(f"read file readme, then save it to b{number}.txt")
        env.reset()
        env.interact("open welcome")
        return []


@pytest.mark.parametrize(
    "attack", [None, *ATTACK_LADDER.values(), HopByHop], ids=["baseline", *ATTACK_LADDER, "hops"]
)
class TestEveryOpponent:
    @pytest.mark.parametrize("guardrail", [Counting, CountingToSanitize])
    def test_a_guardrail_that_counts_calls_is_inconsistent(
        self, attack: type[Attack] | None, guardrail: type[GuardrailBase]
    ) -> None:
        match = play_defense(SETTINGS, guardrail, attack=None if attack is None else attack())
        assert match.inconsistent > 0

    def test_a_steady_guardrail_is_consistent(self, attack: type[Attack] | None) -> None:
        match = play_defense(SETTINGS, Steady, attack=None if attack is None else attack())
        assert match.inconsistent == 0


class TestSample:
    def test_takes_chains_with_and_without_a_denial(self) -> None:
        sample = SearchSample(SETTINGS)
        for number in range(1_000):
            decisions = "aad" if number % 3 == 0 else "aaa"
            sample.see(Line(None, Turn(str(number)), decisions))
        chains = sample.chains()
        assert sum(chain.decisions == "aad" for chain in chains) == SAMPLED[True]
        assert sum(chain.decisions == "aaa" for chain in chains) == SAMPLED[False]
        # Not only the first or the last ones.
        numbers = sorted(int(chain.turns[0].message) for chain in chains)
        assert numbers[0] < 500 < numbers[-1]

    def test_the_same_search_gives_the_same_sample(self) -> None:
        samples = []
        for _ in range(2):
            sample = SearchSample(SETTINGS)
            for number in range(200):
                sample.see(Line(None, Turn(str(number)), "a"))
            samples.append(sample.chains())
        assert samples[0] == samples[1]
