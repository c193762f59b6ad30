"""The cartographer: probe the guardrail, map the world, then combine what is open.

This attack does not search at random. First it probes the guardrail with small questions: which
words it refuses, which tools it allows, what a read blocks and for how long. Then it maps all
documents that it can open. From both it composes chains: each document by every way to open it,
each secret by every way out. It returns the chains that worked.
"""

from tiltyard.attacks.budgeted_env import BudgetedEnv, candidates
from tiltyard.attacks.cartographer.atlas import draw_map
from tiltyard.attacks.cartographer.model import probe
from tiltyard.attacks.cartographer.orders import find_orders
from tiltyard.attacks.cartographer.secrets import find_ways_out
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig


class Cartographer:
    """Spends a small part of the budget in a world of common size."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        budgeted = BudgetedEnv(env, config)
        model = probe(budgeted)
        atlas = draw_map(budgeted, model)
        return candidates(
            [*find_ways_out(budgeted, model, atlas), *find_orders(budgeted, model, atlas)]
        )
