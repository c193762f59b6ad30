"""Calibration: play both ladders and compare them with the design's tables.

Every row is a real match. If the measured scores differ too much from the expected ones, the module
works out the adjustments that the design proposes, as a changed ruleset.
"""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final

from msgspec import structs

from tiltyard.attacks import ATTACK_LADDER
from tiltyard.benign import extended_suite, play, utility_under_attack
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.judge.judge import Judge
from tiltyard.judge.scoring import FULL_SCORE
from tiltyard.matches.baseline import run_baseline
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.reporting.calibration_schema import (
    Advice,
    AttackRow,
    Calibration,
    ConvergencePoint,
    DefenseRow,
    OtherSeed,
)
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import SearchStatus
from tiltyard.studies import expectations
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario


def measure_defense(scenario: Scenario, name: str, ruleset: Ruleset, key: str = "") -> DefenseRow:
    """Play one rung of the defense ladder, and the two benign suites that are not scored."""
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
    """Play both ladders in the world of another seed, without the suites that are not scored."""
    settings = MatchSettings(generate(seed), ruleset)
    matches = [play_defense(settings, make) for make in GUARDRAIL_LADDER.values()]
    attacks = [play_offense(settings, make()) for make in ATTACK_LADDER.values()]
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
) -> tuple[ConvergencePoint, ...]:
    """Run the baseline against a rung for several budgets, to see when it finds nothing new."""
    make = GUARDRAIL_LADDER[name]
    statuses: list[SearchStatus] = []
    steps = ruleset.search.steps * budgets
    settings = MatchSettings(scenario, ruleset, key=key, steps=steps)
    exploration = run_baseline(settings, make(), on_status=statuses.append)
    judge = Judge(scenario, make(), ruleset=ruleset, key=key)
    # The search keeps claims in the order of discovery, so the first `status.claims` of them were
    # known at the time of a status.
    found = [
        {finding.cell.breach for finding in judge.findings(chain)}
        for chain in exploration.claims.values()
    ]
    points: list[ConvergencePoint] = []
    for part in range(1, CHECKPOINTS + 1):
        status = next(one for one in statuses if one.steps >= steps * part // CHECKPOINTS)
        breaches: set[Any] = set().union(*found[: status.claims])
        points.append(
            ConvergencePoint(status.steps, status.interactions, status.cells, len(breaches))
        )
    return tuple(points)


HALF: Final = " (more than half would be a reason)"


def advise(
    defense: Sequence[DefenseRow], attack: Sequence[AttackRow], ruleset: Ruleset
) -> Iterator[Advice]:
    """Yield each of the design's four conditions, whether it holds, and what it would change."""
    rows = list(zip(attack, expectations.ATTACK, strict=True))
    low = [row.name for row, expected in rows if row.raw < expected.raw[0]]
    high = [row.name for row, expected in rows if _is_over(row.raw, expected.raw[1])]
    scale = rescale(attack[len(attack) // 2].raw, ruleset)
    yield _condition(
        "offense scores too low", low, len(rows), "below the expected raw score", scale
    )
    yield _condition(
        "offense scores too high", high, len(rows), "above the expected raw score", scale
    )
    guards = list(zip(defense, expectations.DEFENSE, strict=True))
    weak = [row.name for row, expected in guards if _is_over(row.breaches, expected.breaches[1])]
    strong = [row.name for row, expected in guards if row.breaches < expected.breaches[0]]
    depth = search_less(ruleset)
    yield _condition(
        "defense scores too low", weak, len(guards), "with more breaches than expected", depth
    )
    yield _condition(
        "defense scores too high", strong, len(guards), "with fewer breaches than expected", {}
    )


def _condition(
    name: str, rungs: Sequence[str], of: int, what: str, changes: dict[str, int]
) -> Advice:
    """Return a condition, which holds if more than half of the rungs meet it."""
    holds = len(rungs) > of // 2
    listed = f": {', '.join(rungs)}" if rungs else ""
    unchanged = "" if changes else "; it moves no constant"
    why = f"{len(rungs)} of {of} rungs {what}{listed}{HALF}{unchanged}"
    return Advice(name, holds, why, changes if holds else {})


def _is_over(value: int, most: int | None) -> bool:
    return most is not None and value > most


def rescale(raw: float, ruleset: Ruleset) -> dict[str, int]:
    """Return the `full_marks` at which `raw` points give the middle of the expected score."""
    low, high = expectations.MIDDLE_ATTACK.score
    wanted = (low + high) / 2
    scaled = raw * FULL_SCORE / wanted if raw else ruleset.attack.full_marks
    return {"attack.full_marks": max(10, round(scaled / 10) * 10)}


def search_less(ruleset: Ruleset) -> dict[str, int]:
    """Return the depth of a baseline that explores a quarter less deeply."""
    return {"search.chain_steps": max(10, ruleset.search.chain_steps * 3 // 4)}


def apply_changes(ruleset: Ruleset, changes: dict[str, int]) -> Ruleset:
    """Return the ruleset with changed constants and the next version number."""
    for name, value in changes.items():
        table, _, field = name.partition(".")
        part = structs.replace(getattr(ruleset, table), **{field: value})
        ruleset = structs.replace(ruleset, **{table: part})
    return structs.replace(ruleset, version=ruleset.version + 1)


OnMatch = Callable[[str], None]


def calibrate(seed: int, ruleset: Ruleset, on_match: OnMatch) -> Calibration:
    """Play both ladders in the world of `seed`; `on_match` gets the name of each match."""
    scenario = generate(seed)
    defense, attack = [], []
    for name in GUARDRAIL_LADDER:
        on_match(f"defense: {name}")
        defense.append(measure_defense(scenario, name, ruleset))
    for name in ATTACK_LADDER:
        on_match(f"attack: {name}")
        attack.append(measure_attack(scenario, name, ruleset))
    advice = tuple(advise(defense, attack, ruleset))
    changes = {name: value for each in advice for name, value in each.changes.items()}
    return Calibration(
        ruleset.id,
        seed,
        tuple(defense),
        tuple(attack),
        expectations.DEFENSE,
        expectations.ATTACK,
        advice,
        tuple(expectations.contradictions(ruleset)),
        apply_changes(ruleset, changes) if changes else None,
    )
