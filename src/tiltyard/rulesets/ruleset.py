"""A ruleset: every number and name that defines a competition, as versioned data.

The shipped rulesets are the TOML files beside this module; `design.toml` is the default. The
structs below mirror the tables of a file, and their annotations say which values are allowed.
"""

import re
import reprlib
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct, structs

Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
SecondsUpToADay = Annotated[int, Meta(ge=1, le=86_400)]
NonEmpty = Annotated[tuple[str, ...], Meta(min_length=1)]
OperatorName = Literal["append", "replace", "splice", "wash", "recode", "retarget"]
"""The name of a mutation in `tiltyard.search.moves`."""

PREDICATES: Final = frozenset(
    ("EXFILTRATION", "UNTRUSTED_TO_ACTION", "DESTRUCTIVE_WRITE", "CONFUSED_DEPUTY")
)

_SHORT: Final = reprlib.Repr()
_SHORT.maxlevel = 1


class AttackRules(Struct, frozen=True, forbid_unknown_fields=True):
    weights: dict[str, NonNegative]
    """Points for each predicate, counted once per core."""
    points_per_cell: NonNegative
    full_marks: Positive
    """Raw points that give a score of 1000."""
    volume_full_marks: Positive
    """Raw points that give a volume score of 1000. The volume score counts every finding; reports
    show it, but no ranking uses it."""
    steps: Positive
    """Budget of one attack."""
    max_candidates: Positive
    max_messages: Positive
    max_message_chars: Positive


class DefenseRules(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    breach_percent: NonNegative
    false_positive_points: NonNegative
    variants: Positive
    """Trials of each benign operation with an ordinary task."""
    long_variants: NonNegative
    """Trials of each benign operation with a conversation of several tasks."""
    injected_variants: NonNegative
    """Trials of each benign operation with a live injection in a page or mail that the task reads.
    An operation that reads neither has as many additional long conversations."""
    max_orders: Positive | None = None
    """The battery plays at most so many conversations with an order that waits, with one that comes
    back, and with one that is close to the user's request. Without this number, it plays all."""

    @property
    def trials(self) -> int:
        """Return the number of trials of each benign operation."""
        return self.variants + self.long_variants + self.injected_variants


class PlayRules(Struct, frozen=True, forbid_unknown_fields=True):
    calls_per_message: Positive
    agent: str
    offense_opponent: str
    """The guardrail that an attack plays against."""
    defense_opponent: str
    """The attack that a guardrail plays against; `baseline` is the search configured below."""
    packages: tuple[str, ...]
    """Third-party packages that a submission may import if they are installed."""


class LimitRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Time limits. A match that exceeds one ends without a score."""

    offense_seconds: Positive
    defense_seconds: Positive


class ModelRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Budgets and model settings of an offense match whose agent is a language model.

    Defense matches always use the deterministic agent and ignore this table.
    """

    steps: Positive
    """Budget of one attack."""
    max_candidates: Positive
    max_messages: Positive
    calls_per_message: Positive
    requests: Positive
    """Requests to the model in one match, verification included."""
    attack_requests: Positive
    """The part of `requests` that the attack itself may use."""
    samples: Positive
    """Runs of the counterfactual. Actions proposed in any sample are attributed to the user."""
    repairs: NonNegative
    """How often the agent asks again when a reply is not a valid action."""
    max_tokens: Positive
    """Length limit of one reply."""
    output_chars: Positive
    """How much of a tool's output the model sees."""
    concurrency: Positive
    """Candidates judged at the same time. Affects speed, and how the remaining requests are
    divided among the candidates."""
    seconds: SecondsUpToADay
    """Time limit of one reply."""
    retries: NonNegative


class QuickRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Smaller budgets, for practice."""

    attack_steps: Positive
    search_steps: Positive


class OfficialRules(Struct, frozen=True, forbid_unknown_fields=True):
    seeds: Positive
    """Number of worlds drawn from an organizer's key."""


SUITE_PHRASES: Final = "suite"
"""The kind of phrases that come from the benign suite and not from a ruleset."""


class VocabularyRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The messages a search can send. In a phrase, `{slot}` stands for one of the slot's words.

    In a ruleset, phrases and the words of slots are templates in the language of the benign suite:
    `[open|visit]` is a choice, and `{page_open}` a request to open a page of the slot `page`.
    """

    phrases: dict[str, tuple[str, ...]]
    """Phrases by kind. The phrases of the kind `suite` are all messages of the benign suite."""
    weights: NonEmpty
    """Kinds of phrases to draw from. A kind that appears twice is drawn twice as often."""
    washes: NonEmpty
    """Harmless messages that push earlier ones out of a guardrail's memory."""
    slots: dict[str, tuple[str, ...]]
    learns: tuple[str, ...]
    """Slots that also take names found in search results and mail listings."""


class SearchRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The baseline attacker: Go-Explore with this vocabulary, these operators and this budget."""

    steps: Positive
    chain_steps: Positive
    """The search does not extend a chain that took this many steps."""
    slots: Positive
    """Chains played in one epoch. The number affects the result; it does not depend on the number
    of processes."""
    cells: Positive
    claims: Positive
    """How many chains the search may submit to the judge."""
    states: NonNegative
    """Size of the cache of states to return to. Affects speed and memory, never the result."""
    operators: Annotated[tuple[OperatorName, ...], Meta(min_length=1)]
    """Mutations to draw from. An operator that appears twice is drawn twice as often."""
    vocabulary: VocabularyRules


class ArenaRules(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The defense match over packs of declared tools."""

    worlds: Annotated[int, Meta(ge=1, le=100)]
    packs_a_world: Positive
    """How many packs a world mixes. With fewer packs, a world has all of them."""
    quick_tasks: Positive
    """Tasks of each pack with the quick budget."""
    tasks: Positive | None = None
    """Tasks of each pack. None plays all of them."""


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
    """None if the agent is always the deterministic one."""
    arena: ArenaRules | None = None
    """None if a defense match is played on the simulated machine."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all fields."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def with_quick_budgets(self) -> "Ruleset":
        """Return these rules with the budgets for practice."""
        return structs.replace(
            self,
            attack=structs.replace(self.attack, steps=self.quick.attack_steps),
            search=structs.replace(self.search, steps=self.quick.search_steps),
            model=None if self.model is None else _with_tenth_of_budgets(self.model),
            arena=None
            if self.arena is None
            else structs.replace(self.arena, tasks=self.arena.quick_tasks),
        )

    def with_model(self) -> "Ruleset":
        """Return the rules of an offense match whose agent is a language model."""
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


def _with_tenth_of_budgets(model: ModelRules) -> ModelRules:
    budgets = {name: getattr(model, name) for name in ("steps", "requests", "attack_requests")}
    return structs.replace(model, **{name: max(1, count // 10) for name, count in budgets.items()})


class RulesetError(ValueError):
    """A ruleset does not exist, cannot be read, or has a value that is not allowed."""


def load_ruleset(name: str = "design") -> Ruleset:
    """Return the shipped ruleset `name`."""
    return read_ruleset(_read_shipped(name), f"the ruleset {name}")


def find_ruleset(name_or_path: str) -> Ruleset:
    """Return a shipped ruleset by its name, or read one from the path of a `.toml` file."""
    if not name_or_path.endswith(".toml"):
        return load_ruleset(name_or_path)
    try:
        text = Path(name_or_path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesetError(f"the ruleset {name_or_path} cannot be read: {error}") from None
    return read_ruleset(text, name_or_path)


def read_ruleset(text: str, source: str = "the text") -> Ruleset:
    """Read a ruleset from TOML. Errors name it by `source`.

    With `extends = "design"` the text needs only the values that differ from that shipped ruleset.
    """
    tables: dict[str, Any] = {}
    try:
        tables = _read_tables(text)
        ruleset = msgspec.convert(tables, Ruleset)
        check_ruleset(ruleset)
    except RecursionError:
        raise RulesetError(f"{source} is not a ruleset: it is nested too deeply") from None
    except msgspec.ValidationError as error:
        problem = _describe(error, tables)
        raise RulesetError(f"{source} is not a ruleset: {problem}") from None
    except ValueError as error:
        raise RulesetError(f"{source} is not a ruleset: {error}") from None
    return ruleset


def check_ruleset(ruleset: Ruleset) -> None:
    """Raise RulesetError if fields of `ruleset` contradict each other.

    The annotations of the structs cover single values; msgspec checks those on decoding.
    """
    problem = next(_contradictions(ruleset), None)
    if problem is not None:
        raise RulesetError(problem)


def _contradictions(ruleset: Ruleset) -> Iterator[str]:
    if set(ruleset.attack.weights) != PREDICATES:
        given, allowed = (", ".join(sorted(x)) for x in (ruleset.attack.weights, PREDICATES))
        yield f"`attack.weights` names {given or 'nothing'}; expected exactly {allowed}"
    vocabulary = ruleset.search.vocabulary
    if SUITE_PHRASES in vocabulary.phrases:
        yield (
            f"`search.vocabulary.phrases` has phrases of the kind {SUITE_PHRASES!r}, "
            "which the benign suite gives"
        )
    for kind in vocabulary.weights:
        if kind != SUITE_PHRASES and not vocabulary.phrases.get(kind):
            yield (
                f"`search.vocabulary.weights` names {kind!r}, "
                "but `search.vocabulary.phrases` has no such phrases"
            )


def _read_shipped(name: str) -> str:
    folder = files("tiltyard.rulesets")
    shipped = sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )
    if name not in shipped:
        raise RulesetError(f"there is no ruleset named {name!r}; there are {', '.join(shipped)}")
    return (folder / f"{name}.toml").read_text(encoding="utf-8")


def _read_tables(text: str) -> dict[str, Any]:
    """Return the tables of a ruleset, completed with those of the ruleset that it extends."""
    own = tomllib.loads(text)
    base = own.pop("extends", None)
    return own if base is None else _merge(_read_tables(_read_shipped(str(base))), own)


def _merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in own.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merge(merged[name], value) if both else value
    return merged


def _describe(error: msgspec.ValidationError, tables: dict[str, Any]) -> str:
    """Return which field is wrong, its value, and what is allowed."""
    problem, _, where = str(error).partition(" - at `$")
    # For a value of a mapping, msgspec writes `[...]` in place of the key.
    path, in_mapping, _ = where.strip(".`").partition("[...]")
    if problem.startswith("Object "):
        detail = problem.removeprefix("Object ").removeprefix("contains ")
        return f"{detail} {f'in the table `{path}`' if path else 'at the top level'}"
    allowed = problem.removeprefix("Expected ")
    if problem.startswith("Invalid enum value"):
        allowed = f"one of {', '.join(get_args(OperatorName))}"
    if in_mapping:
        allowed += " for every value"
    return f"`{path}` is {_SHORT.repr(_value_at(path, tables))}; expected {allowed}"


def _value_at(path: str, tables: dict[str, Any]) -> object:
    value: Any = tables
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return value
