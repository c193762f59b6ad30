"""Go-Explore: the search of the baseline attacker, with a vocabulary of the whole grammar.

The search itself is `tiltyard.search.explore`. The vocabulary is data in `go_explore.toml`.
"""

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from tiltyard.attacks.budgeted_env import BudgetedEnv, candidates
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search import explore


class GoExplore:
    """Spends the whole budget on one search, and returns every possible breach."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        budgeted = BudgetedEnv(env, config)
        found = explore(budgeted, all_words(), ("go-explore", env.seed), steps=budgeted.steps_left)
        return candidates(found.chains)


@cache
def all_words() -> SearchRules:
    """Return search rules with every clause of the grammar."""
    source = files("tiltyard.attacks") / "go_explore.toml"
    return msgspec.convert(tomllib.loads(source.read_text(encoding="utf-8")), SearchRules)
