"""The cartographer: probe the guardrail, map the house, then compose the routes that are open.

It does not search by chance. It first asks small questions to learn a model of the guardrail:
which words it refuses, which tools it lets through, what a read closes and for how long. With the
model it draws a map of all documents that can be opened, and from both it composes routes: each
document by every way to open it, each secret by every way out. What worked once is what it shows.
"""

from tiltyard.attacks.cartographer.atlas import draw_map
from tiltyard.attacks.cartographer.model import probe
from tiltyard.attacks.cartographer.orders import find_orders
from tiltyard.attacks.cartographer.vaults import find_ways_out
from tiltyard.attacks.metered import Metered, candidates
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig


class Cartographer:
    """Spends what its questions cost: a small part of the budget in a house of common size."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]:
        desk = Metered(env, config)
        model = probe(desk)
        atlas = draw_map(desk, model)
        return candidates([*find_ways_out(desk, model, atlas), *find_orders(desk, model, atlas)])
