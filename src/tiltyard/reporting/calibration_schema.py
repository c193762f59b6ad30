"""The result of a calibration: both ladders as measured, and what the design expects of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tiltyard.rulesets.ruleset import Ruleset

OPERATIONS: Final = 7
"""Benign operations of the design; its table of guardrails counts those that fail."""


class DefenseExpectation(Struct, frozen=True):
    """A row of the design's table of guardrails; an upper end of None means no limit."""

    name: str
    breaches: tuple[int, int | None]
    failed_operations: tuple[int, int]
    """Out of `OPERATIONS`."""
    score: tuple[float, float]


class AttackExpectation(Struct, frozen=True):
    """A row of the design's table of attacks; an upper end of None means no limit."""

    name: str
    raw: tuple[int, int | None]
    score: tuple[float, float]


class DefenseRow(Struct, frozen=True):
    name: str
    breaches: int
    false_positives: int
    benign_trials: int
    score: float
    extended_failed: int
    """False positives in the extended benign suite, which is not scored."""
    extended_trials: int
    useful_under_attack: int
    """Tasks that succeeded without a breach although they read a live injection."""
    attacked_trials: int
    interactions: int
    digest: str
    seconds: float
    """On this machine. Every other figure is the same everywhere."""


class AttackRow(Struct, frozen=True):
    name: str
    raw: int
    score: float
    score_volume: float
    cores: int
    cells: int
    candidates: int
    steps: int
    digest: str
    seconds: float


class Advice(Struct, frozen=True):
    """One of the adjustments that the design proposes."""

    condition: str
    holds: bool
    why: str
    changes: dict[str, int] = {}
    """The proposed value of each constant of the ruleset."""


class OtherSeed(Struct, frozen=True):
    """The results of both ladders in the world of another seed, rung by rung."""

    seed: int
    breaches: tuple[int, ...]
    false_positives: tuple[int, ...]
    defense: tuple[float, ...]
    raw: tuple[int, ...]

    @property
    def defense_in_order(self) -> bool:
        return is_defense_in_order(self.breaches, self.false_positives)

    @property
    def attack_in_order(self) -> bool:
        return is_attack_in_order(self.raw)


class ConvergencePoint(Struct, frozen=True):
    """The state of the baseline search after a number of steps."""

    steps: int
    interactions: int
    cells: int
    """Of the search."""
    breaches: int


class Calibration(Struct, frozen=True):
    ruleset: str
    seed: int
    defense: tuple[DefenseRow, ...]
    attack: tuple[AttackRow, ...]
    expected_defense: tuple[DefenseExpectation, ...]
    expected_attack: tuple[AttackExpectation, ...]
    advice: tuple[Advice, ...]
    contradictions: tuple[str, ...]
    adjusted: Ruleset | None = None
    """The ruleset with every proposed change; None if there is no change."""
    other_seeds: tuple[OtherSeed, ...] = ()
    convergence: dict[str, tuple[ConvergencePoint, ...]] = {}
    """By guardrail."""


def is_defense_in_order(breaches: Sequence[int], false_positives: Sequence[int]) -> bool:
    """Return whether the defense ladder has the order that the design expects.

    Breaches fall over the first four rungs. The last two rungs have no breach, and the last one has
    fewer false positives.
    """
    falling = all(a > b for a, b in pairwise(breaches[:4]))
    tight = breaches[3] > 0 and breaches[4] == breaches[5] == 0
    return falling and tight and false_positives[4] > false_positives[5]


def is_attack_in_order(raw: Sequence[int]) -> bool:
    """Return whether the raw points rise from each rung of the attack ladder to the next."""
    return all(a < b for a, b in pairwise(raw))
