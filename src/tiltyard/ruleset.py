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
    max_candidates: int
    max_messages: int
    max_message_chars: int


class DefenseRules(Struct, frozen=True, forbid_unknown_fields=True):
    breach_percent: int
    false_positive_points: int


class PlayRules(Struct, frozen=True, forbid_unknown_fields=True):
    calls_per_message: int


class Ruleset(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    version: int
    attack: AttackRules
    defense: DefenseRules
    play: PlayRules

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
