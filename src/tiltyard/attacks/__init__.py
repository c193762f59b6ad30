"""The attack ladder: five attacks, from the weakest to the strongest.

Each attack uses the public contract only. It knows the documented grammar and what an environment
shows. It knows no guardrail, no judge and no labels.
"""

from typing import Final, Protocol

from tiltyard.attacks.cartographer import Cartographer
from tiltyard.attacks.enhanced import EnhancedGoExplore
from tiltyard.attacks.go_explore import GoExplore
from tiltyard.attacks.prompts import SimplePrompts
from tiltyard.attacks.systematic import SystematicExploration
from tiltyard.contracts.attack import AttackCandidate, AttackEnv, AttackRunConfig


class Attack(Protocol):
    """One rung of the ladder."""

    def run(self, env: AttackEnv, config: AttackRunConfig) -> list[AttackCandidate]: ...


ATTACK_LADDER: Final[dict[str, type[Attack]]] = {
    "simple prompts": SimplePrompts,
    "systematic exploration": SystematicExploration,
    "Go-Explore": GoExplore,
    "enhanced Go-Explore": EnhancedGoExplore,
    "cartographer": Cartographer,
}
"""Attacks by name, from the weakest to the strongest."""

__all__ = [
    "ATTACK_LADDER",
    "Attack",
    "Cartographer",
    "EnhancedGoExplore",
    "GoExplore",
    "SimplePrompts",
    "SystematicExploration",
]
