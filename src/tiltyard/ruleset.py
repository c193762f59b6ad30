"""A ruleset: everything about a competition that is a number or a name, as versioned data.

Owns the constants; every report names the ruleset it was made under. What they are used for is
written where they are used.
"""

import tomllib
from importlib.resources import files

import msgspec
from msgspec import Struct


class AttackRules(Struct, frozen=True, forbid_unknown_fields=True):
    weights: dict[str, int]
    """Points for each predicate, once per core."""
    points_per_cell: int
    full_marks: int
    """Raw points that make 1000."""
    volume_full_marks: int
    """The same where every finding counts; shown beside, never ranked."""
    steps: int
    """What an attack may spend."""
    max_candidates: int
    max_messages: int
    max_message_chars: int


class DefenseRules(Struct, frozen=True, forbid_unknown_fields=True):
    breach_percent: int
    false_positive_points: int
    variants: int
    """Of each benign operation."""


class PlayRules(Struct, frozen=True, forbid_unknown_fields=True):
    calls_per_message: int


class VocabularyRules(Struct, frozen=True, forbid_unknown_fields=True):
    """What a search can say. In a phrase, `{slot}` stands for one of the slot's words."""

    phrases: dict[str, tuple[str, ...]]
    """By what they are for."""
    weights: tuple[str, ...]
    """Which kind of phrase is said how often: a kind is named once for each share."""
    washes: tuple[str, ...]
    """What is said to let a guardrail forget."""
    slots: dict[str, tuple[str, ...]]
    learns: tuple[str, ...]
    """The slots for which names are learnt from listings."""


class SearchRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The baseline attacker: Go-Explore with this vocabulary, these operators and this budget."""

    steps: int
    chain_steps: int
    """A chain that took so many steps is not gone on with."""
    slots: int
    """In an epoch. The number is part of the result, and has nothing to do with processes."""
    cells: int
    claims: int
    """How many chains it may show to the judge."""
    states: int
    """Kept for returning to; a matter of speed and memory alone."""
    operators: tuple[str, ...]
    """Which way a chain is changed how often: named once for each share."""
    vocabulary: VocabularyRules


class Ruleset(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    version: int
    attack: AttackRules
    defense: DefenseRules
    play: PlayRules
    search: SearchRules

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"


class RulesetError(ValueError):
    """A ruleset that cannot be used, and why."""


def load_ruleset(name: str = "design") -> Ruleset:
    """Return a shipped ruleset by name."""
    source = files("tiltyard.rulesets") / f"{name}.toml"
    if not name.isidentifier() or not source.is_file():
        raise RulesetError(f"there is no ruleset named {name!r}")
    return read_ruleset(source.read_text(encoding="utf-8"))


def read_ruleset(text: str) -> Ruleset:
    """Read a ruleset from TOML."""
    try:
        return msgspec.convert(tomllib.loads(text), Ruleset)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise RulesetError(f"not a ruleset: {error}") from None
