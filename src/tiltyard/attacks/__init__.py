"""The attack ladder, weakest first: five ways to go about it, each through the public contract.

An attack knows the documented grammar and what an environment shows to everybody. It knows no
guardrail, no judge and no scenario's inside.
"""

from typing import Final, Protocol

from tiltyard.attacks.cartographer import Cartographer
from tiltyard.attacks.enhanced import EnhancedGoExplore
from tiltyard.attacks.go_explore import GoExplore
from tiltyard.attacks.prompts import SimplePrompts
from tiltyard.attacks.systematic import SystematicExploration
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig


class Attack(Protocol):
    """One rung."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]: ...


ATTACK_LADDER: Final[dict[str, type[Attack]]] = {
    "simple prompts": SimplePrompts,
    "systematic exploration": SystematicExploration,
    "Go-Explore": GoExplore,
    "enhanced Go-Explore": EnhancedGoExplore,
    "cartographer": Cartographer,
}
"""From the weakest to the strongest."""

__all__ = [
    "ATTACK_LADDER",
    "Attack",
    "Cartographer",
    "EnhancedGoExplore",
    "GoExplore",
    "SimplePrompts",
    "SystematicExploration",
]
