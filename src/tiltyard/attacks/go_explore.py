"""Go-Explore: the algorithm of the baseline attacker, with the whole documented grammar to say.

Owns nothing but the choice of words, which are data beside this file. The search itself is
`tiltyard.search.explore`.
"""

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from tiltyard.attacks.metered import Metered, candidates
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search import explore


class GoExplore:
    """Spends the whole budget on one search, and shows everything that may be a breach."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        desk = Metered(env, config)
        found = explore(desk, all_words(), ("go-explore", env.seed), steps=desk.steps_left)
        return candidates(found.chains)


@cache
def all_words() -> SearchRules:
    """Return how to search with every clause of the grammar."""
    source = files("tiltyard.attacks") / "go_explore.toml"
    return msgspec.convert(tomllib.loads(source.read_text(encoding="utf-8")), SearchRules)
