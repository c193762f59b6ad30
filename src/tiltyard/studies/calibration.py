"""Calibration: both ladders against the design's tables, measured.

Every row is a real match. What the design expects stands beside it, and where the measured
distribution is off, the design's own adjustments are worked out as a changed ruleset.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.attacks import ATTACK_LADDER
from tiltyard.benign import extended_suite, play, utility_under_attack
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.judge.judge import Judge
from tiltyard.judge.scoring import FULL_SCORE
from tiltyard.matches.defense import play_defense, run_baseline
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import SearchStatus
from tiltyard.studies import expectations
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario


class DefenseRow(Struct, frozen=True):
    name: str
    breaches: int
    false_positives: int
    benign_trials: int
    score: float
    extended_failed: int
    """Of the extended benign suite; beside the score."""
    extended_trials: int
    useful_under_attack: int
    """Tasks that succeeded with a live injection in what they read, and nothing breached."""
    attacked_trials: int
    interactions: int
    digest: str
    seconds: float
    """Of this run, on this machine. Everything else is the same everywhere."""


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
    """One of the design's potential adjustments."""

    condition: str
    holds: bool
    why: str
    changes: dict[str, int] = {}
    """Constants of the ruleset, by name, and what they would become."""


class OtherSeed(Struct, frozen=True):
    """What the ladders come to in another world."""

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


class Point(Struct, frozen=True):
    """How far the baseline has come after so many steps."""

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
    advice: tuple[Advice, ...]
    contradictions: tuple[str, ...]
    adjusted: Ruleset | None = None
    """The ruleset with all that is advised; None if nothing is."""
    other_seeds: tuple[OtherSeed, ...] = ()
    convergence: dict[str, tuple[Point, ...]] = {}
    """By guardrail."""


def is_defense_in_order(breaches: Sequence[int], false_positives: Sequence[int]) -> bool:
    """Tell whether breaches fall over the first four rungs, and the last two are told apart."""
    falling = all(a > b for a, b in pairwise(breaches[:4]))
    tight = breaches[3] > 0 and breaches[4] == breaches[5] == 0
    return falling and tight and false_positives[4] > false_positives[5]


def is_attack_in_order(raw: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(raw))


def measure_defense(scenario: Scenario, name: str, ruleset: Ruleset, key: str = "") -> DefenseRow:
    """Play one rung of the defense ladder, and the suites beside the score."""
    make = GUARDRAIL_LADDER[name]
    start = perf_counter()
    match = play_defense(MatchSettings(scenario, ruleset, key=key), make)
    seconds = perf_counter() - start
    tasks = extended_suite(scenario)
    extended = [play(task, scenario, make).false_positive for task in tasks]
    utility = utility_under_attack(tasks, scenario, key, make, ruleset=ruleset)
    score = match.score
    return DefenseRow(
        name,
        score.breaches,
        score.false_positives,
        score.benign_trials,
        score.score,
        sum(extended),
        len(extended),
        utility.useful,
        utility.trials,
        match.exploration.interactions,
        match.digest,
        seconds,
    )


def measure_attack(scenario: Scenario, name: str, ruleset: Ruleset, key: str = "") -> AttackRow:
    """Play one rung of the attack ladder."""
    start = perf_counter()
    match = play_offense(MatchSettings(scenario, ruleset, key=key), ATTACK_LADDER[name]())
    score = match.score
    return AttackRow(
        name,
        score.raw,
        score.score,
        score.score_volume,
        score.cores,
        score.cells,
        match.candidates,
        match.steps,
        match.digest,
        perf_counter() - start,
    )


def measure_seed(seed: int, ruleset: Ruleset) -> OtherSeed:
    """Play both ladders in another world, scores alone."""
    scenario = generate(seed)
    matches = [
        play_defense(MatchSettings(scenario, ruleset), make) for make in GUARDRAIL_LADDER.values()
    ]
    attacks = [
        play_offense(MatchSettings(scenario, ruleset), make()) for make in ATTACK_LADDER.values()
    ]
    return OtherSeed(
        seed,
        tuple(match.score.breaches for match in matches),
        tuple(match.score.false_positives for match in matches),
        tuple(match.score.score for match in matches),
        tuple(match.score.raw for match in attacks),
    )


CHECKPOINTS: Final = 12


def measure_convergence(
    scenario: Scenario, name: str, ruleset: Ruleset, *, budgets: int = 2, key: str = ""
) -> tuple[Point, ...]:
    """Let the baseline run for several budgets against a rung, and see when it stops finding."""
    make = GUARDRAIL_LADDER[name]
    told: list[SearchStatus] = []
    steps = ruleset.search.steps * budgets
    exploration = run_baseline(
        MatchSettings(scenario, ruleset, key=key, steps=steps), make(), on_status=told.append
    )
    judge = Judge(scenario, make(), ruleset=ruleset, key=key)
    # Claims are kept in the order of their discovery, so each says when its breach was known.
    found = [
        {finding.cell.breach for finding in judge.findings(chain)}
        for chain in exploration.claims.values()
    ]
    points: list[Point] = []
    for part in range(1, CHECKPOINTS + 1):
        progress = next(p for p in told if p.steps >= steps * part // CHECKPOINTS)
        breaches: set[Any] = set().union(*found[: progress.claims])
        points.append(Point(progress.steps, progress.interactions, progress.cells, len(breaches)))
    return tuple(points)


HALF: Final = " (more than half would be a reason)"


def advise(
    defense: Sequence[DefenseRow], attack: Sequence[AttackRow], ruleset: Ruleset
) -> Iterator[Advice]:
    """Yield the design's four conditions, whether each holds, and what would be changed."""
    rows = list(zip(attack, expectations.ATTACK, strict=True))
    low = [row.name for row, expected in rows if row.raw < expected.raw[0]]
    high = [row.name for row, expected in rows if _is_over(row.raw, expected.raw[1])]
    most = len(rows) // 2
    yield Advice(
        "offense scores too low",
        len(low) > most,
        _count(low, len(rows), "below the expected raw score") + HALF,
        rescale(attack[len(attack) // 2].raw, ruleset) if len(low) > most else {},
    )
    yield Advice(
        "offense scores too high",
        len(high) > most,
        _count(high, len(rows), "above the expected raw score") + HALF,
        rescale(attack[len(attack) // 2].raw, ruleset) if len(high) > most else {},
    )
    guards = list(zip(defense, expectations.DEFENSE, strict=True))
    weak = [row.name for row, expected in guards if _is_over(row.breaches, expected.breaches[1])]
    yield Advice(
        "defense scores too low",
        len(weak) > len(guards) // 2,
        _count(weak, len(guards), "with more breaches than expected") + HALF,
        search_less(ruleset) if len(weak) > len(guards) // 2 else {},
    )
    strong = [row.name for row, expected in guards if row.breaches < expected.breaches[0]]
    yield Advice(
        "defense scores too high",
        len(strong) > len(guards) // 2,
        _count(strong, len(guards), "with fewer breaches than expected")
        + HALF
        + "; it moves no constant",
    )


def _is_over(value: int, most: int | None) -> bool:
    return most is not None and value > most


def _count(names: Sequence[str], of: int, what: str) -> str:
    told = f": {', '.join(names)}" if names else ""
    return f"{len(names)} of {of} rungs {what}{told}"


def rescale(raw: float, ruleset: Ruleset) -> dict[str, int]:
    """Return the raw points for full marks at which such an attack gets its expected middle."""
    low, high = expectations.MIDDLE_ATTACK.score
    wanted = (low + high) / 2
    scaled = raw * FULL_SCORE / wanted if raw else ruleset.attack.full_marks
    return {"attack.full_marks": max(10, round(scaled / 10) * 10)}


def search_less(ruleset: Ruleset) -> dict[str, int]:
    """Return the depth of a baseline that explores a quarter less deep."""
    return {"search.chain_steps": max(10, ruleset.search.chain_steps * 3 // 4)}


def apply_changes(ruleset: Ruleset, changes: dict[str, int]) -> Ruleset:
    """Return the ruleset with some constants changed, as another version of it."""
    for name, value in changes.items():
        table, _, field = name.partition(".")
        part = structs.replace(getattr(ruleset, table), **{field: value})
        ruleset = structs.replace(ruleset, **{table: part})
    return structs.replace(ruleset, version=ruleset.version + 1)


Tell = Callable[[str], None]


def calibrate(seed: int, ruleset: Ruleset, tell: Tell) -> Calibration:
    """Play both ladders in the world of a seed."""
    scenario = generate(seed)
    defense, attack = [], []
    for name in GUARDRAIL_LADDER:
        tell(f"defense: {name}")
        defense.append(measure_defense(scenario, name, ruleset))
    for name in ATTACK_LADDER:
        tell(f"attack: {name}")
        attack.append(measure_attack(scenario, name, ruleset))
    advice = tuple(advise(defense, attack, ruleset))
    changes = {name: value for each in advice for name, value in each.changes.items()}
    return Calibration(
        ruleset.id,
        seed,
        tuple(defense),
        tuple(attack),
        advice,
        tuple(expectations.contradictions(ruleset)),
        apply_changes(ruleset, changes) if changes else None,
    )
