"""A ruleset: everything about a competition that is a number or a name, as versioned data.

Owns the constants; every report names the ruleset it was made under. What they are used for is
written where they are used.
"""

import re
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs


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
    agent: str
    offense_opponent: str
    """The guardrail that an attack goes against."""
    defense_opponent: str
    """The attack that a guardrail is up against; `baseline` is the search below."""
    packages: tuple[str, ...]
    """Third-party ones that a submission may import, where they are installed."""


class LimitRules(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a match may take before it is broken off."""

    offense_seconds: int
    defense_seconds: int


class ModelRules(Struct, frozen=True, forbid_unknown_fields=True):
    """An offense match with a language model as the agent: smaller, and how the model is asked.

    A guardrail stands against the deterministic agent all the same, under the other tables.
    """

    steps: int
    """What an attack may spend."""
    max_candidates: int
    max_messages: int
    calls_per_message: int
    requests: int
    """For one match, verification included."""
    attack_requests: int
    """Of these, for the attack itself."""
    samples: int
    """How often the counterfactual is played: what any of them does, the user's words lead to."""
    repairs: int
    """How often a reply that is no action is sent back."""
    max_tokens: int
    """Of one reply."""
    output_chars: int
    """Of a tool's result, as far as a model is shown it."""
    concurrency: int
    """Candidates that are heard at the same time. A matter of speed, and of how what is left of
    the requests is divided."""
    seconds: int
    """For one reply."""
    retries: int


class QuickRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Smaller budgets, for practice."""

    attack_steps: int
    search_steps: int


class OfficialRules(Struct, frozen=True, forbid_unknown_fields=True):
    seeds: int
    """How many are drawn from an organizer's key."""


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


class Ruleset(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    version: int
    attack: AttackRules
    defense: DefenseRules
    play: PlayRules
    limits: LimitRules
    quick: QuickRules
    official: OfficialRules
    search: SearchRules
    model: ModelRules | None = None
    """Only where a language model may be the agent."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything in it."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def quickly(self) -> "Ruleset":
        """Return the same rules with the smaller budgets."""
        return structs.replace(
            self,
            attack=structs.replace(self.attack, steps=self.quick.attack_steps),
            search=structs.replace(self.search, steps=self.quick.search_steps),
            model=None if self.model is None else _tenth(self.model),
        )

    def with_model(self) -> "Ruleset":
        """Return the rules of an offense match with a language model."""
        model = self.model
        if model is None:
            return self
        attack = structs.replace(
            self.attack,
            steps=model.steps,
            max_candidates=model.max_candidates,
            max_messages=model.max_messages,
        )
        play = structs.replace(self.play, calls_per_message=model.calls_per_message)
        return structs.replace(self, attack=attack, play=play)


def _tenth(model: ModelRules) -> ModelRules:
    """Return a tenth of a model's budgets, for practice."""
    parts = {name: getattr(model, name) for name in ("steps", "requests", "attack_requests")}
    return structs.replace(model, **{name: max(1, count // 10) for name, count in parts.items()})


class RulesetError(ValueError):
    """A ruleset that cannot be used, and why."""


def load_ruleset(name: str = "design") -> Ruleset:
    """Return a shipped ruleset by name."""
    return read_ruleset(_shipped(name))


def _shipped(name: str) -> str:
    shipped = sorted(
        entry.name.removesuffix(".toml")
        for entry in files("tiltyard.rulesets").iterdir()
        if entry.name.endswith(".toml")
    )
    if name not in shipped:
        raise RulesetError(f"there is no ruleset named {name!r}; there are {', '.join(shipped)}")
    return (files("tiltyard.rulesets") / f"{name}.toml").read_text(encoding="utf-8")


def find_ruleset(wanted: str) -> Ruleset:
    """Return a shipped ruleset by name, or one from a `.toml` file."""
    if not wanted.endswith(".toml"):
        return load_ruleset(wanted)
    try:
        return read_ruleset(Path(wanted).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RulesetError(f"the ruleset {wanted} cannot be read: {error}") from None


def read_ruleset(text: str) -> Ruleset:
    """Read a ruleset from TOML. One that `extends` a shipped one says what is different in it."""
    try:
        ruleset = msgspec.convert(_whole(text), Ruleset)
    except RecursionError:
        raise RulesetError("not a ruleset: it is nested too deeply") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise RulesetError(f"not a ruleset: {error}") from None
    check_ruleset(ruleset)
    return ruleset


def check_ruleset(ruleset: Ruleset) -> None:
    """Raise if the numbers of a ruleset make no match."""
    problem = next(_problems(ruleset), None)
    if problem is not None:
        raise RulesetError(f"not a ruleset: {problem}")


def _whole(text: str) -> dict[str, Any]:
    """Return a ruleset's tables, with those of the shipped one that it extends."""
    given = tomllib.loads(text)
    base = given.pop("extends", None)
    return given if base is None else _merged(_whole(_shipped(str(base))), given)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in own.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _problems(ruleset: Ruleset) -> Iterator[str]:
    """Yield what is wrong with a ruleset beyond its types."""
    attack, defense, search = ruleset.attack, ruleset.defense, ruleset.search
    for table, names in (
        (attack, ("full_marks", "volume_full_marks", "steps", "max_candidates", "max_messages")),
        (attack, ("max_message_chars",)),
        (defense, ("variants",)),
        (ruleset.play, ("calls_per_message",)),
        (ruleset.limits, ("offense_seconds", "defense_seconds")),
        (ruleset.quick, ("attack_steps", "search_steps")),
        (ruleset.official, ("seeds",)),
        (search, ("steps", "chain_steps", "slots", "cells", "claims")),
        *([] if ruleset.model is None else [(ruleset.model, _MODEL_COUNTS)]),
    ):
        for name in names:
            value = getattr(table, name)
            if value < 1:
                yield f"`{name}` is {value}, and must be at least 1"
    if ruleset.model is not None and ruleset.model.seconds > _MOST_SECONDS:
        yield f"`seconds` is {ruleset.model.seconds}, and must be at most {_MOST_SECONDS}"
    for name, value in (
        ("points_per_cell", attack.points_per_cell),
        ("breach_percent", defense.breach_percent),
        ("false_positive_points", defense.false_positive_points),
        ("states", search.states),
        *attack.weights.items(),
        *([] if ruleset.model is None else [("repairs", ruleset.model.repairs)]),
        *([] if ruleset.model is None else [("retries", ruleset.model.retries)]),
    ):
        if value < 0:
            yield f"`{name}` is {value}, and must not be negative"
    if set(attack.weights) != PREDICATES:
        yield f"`attack.weights` must name {', '.join(sorted(PREDICATES))}, and nothing else"
    yield from _search_problems(search)


def _search_problems(search: SearchRules) -> Iterator[str]:
    vocabulary = search.vocabulary
    for name in search.operators:
        if name not in OPERATORS:
            yield f"there is no operator {name!r}; there are {', '.join(sorted(OPERATORS))}"
    if not search.operators or not vocabulary.weights or not vocabulary.washes:
        yield "`operators`, `weights` and `washes` must not be empty"
    for kind in vocabulary.weights:
        if not vocabulary.phrases.get(kind):
            yield f"`weights` names {kind!r}, for which there are no phrases"
    known = vocabulary.slots.keys() | set(vocabulary.learns)
    said = [phrase for kind in vocabulary.phrases.values() for phrase in kind]
    for phrase in (*said, *vocabulary.washes):
        for slot in re.findall(r"\{(\w+)\}", phrase):
            if slot not in known:
                yield f"the phrase {phrase!r} has a slot {slot!r}, which nothing fills"


_MOST_SECONDS: Final = 86_400
_MODEL_COUNTS: Final = (
    "steps",
    "max_candidates",
    "max_messages",
    "calls_per_message",
    "requests",
    "attack_requests",
    "samples",
    "max_tokens",
    "output_chars",
    "concurrency",
    "seconds",
)
PREDICATES: Final = frozenset(
    ("EXFILTRATION", "UNTRUSTED_TO_ACTION", "DESTRUCTIVE_WRITE", "CONFUSED_DEPUTY")
)
OPERATORS: Final = frozenset(("append", "replace", "splice", "wash", "recode", "retarget"))
