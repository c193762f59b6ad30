"""Law 3: the clock is a watchdog.

It can end a match, and then there is no score: `tests/isolation/test_guests.py` tests this with the
deadlines of jailed submissions. Here: time decides nothing else, so a slow guardrail and a slow
attack get the same result as fast ones.
"""

import time
from typing import Any, Final

from msgspec import structs

from tiltyard import AttackCandidate, AttackRunConfig, Context, DataFlowGuardrail, Decision
from tiltyard.attacks import SimplePrompts
from tiltyard.contracts.attack import AttackEnv
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate

RULES: Final = load_ruleset()
SHORT: Final = structs.replace(RULES, search=structs.replace(RULES.search, steps=300))


class SlowGuardrail(DataFlowGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        time.sleep(0.001)
        return super().decide(tool_name, tool_args, context)


class SlowAttack(SimplePrompts):
    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        time.sleep(0.2)
        return super().run(env, config)


def test_a_slow_guardrail_gets_the_same_match() -> None:
    fast = play_defense(MatchSettings(generate(123), SHORT), DataFlowGuardrail)
    slow = play_defense(MatchSettings(generate(123), SHORT), SlowGuardrail)
    assert slow.digest == fast.digest


def test_a_slow_attack_gets_the_same_match() -> None:
    fast = play_offense(MatchSettings(generate(123), RULES), SimplePrompts())
    slow = play_offense(MatchSettings(generate(123), RULES), SlowAttack())
    assert slow.digest == fast.digest
