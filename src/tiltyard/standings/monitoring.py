"""Monitoring: what the competition's design asks to track while it runs.

Over the standings of a league: how offense and defense scores are spread and whether they go
together, how the strategies fare, and whether one of the design's adjustments is due.

Percentiles are interpolated linearly between the closest ranks: with n values in order, the P-th
lies (n - 1) * P / 100 places behind the first. The correlation is Pearson's. Either is None where
there is nothing to compute it from.
"""

import statistics
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from math import fsum
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.judge.scoring import FULL_SCORE
from tiltyard.rulesets.ruleset import Ruleset, RulesetError, load_ruleset
from tiltyard.standings.leaderboard import Board
from tiltyard.standings.report_set import ROUNDING, League, Run
from tiltyard.studies import expectations
from tiltyard.studies.calibration import Advice, rescale, search_less

UNCLASSIFIED: Final = "unclassified"
BINS: Final = 10
LEAST_FOR_ADVICE: Final = 4
"""Runs. Fewer have no quartiles, and no constant should be moved for them."""


class Strategy(Struct, frozen=True, forbid_unknown_fields=True):
    """What the design expects of a strategy; both ends of a range belong to it."""

    name: str
    offense: tuple[float, float]
    defense: tuple[float, float]
    total: tuple[float, float]

    def fits(self, run: Run) -> bool:
        return all(
            low <= round(score or 0.0, ROUNDING) <= high
            for score, (low, high) in (
                (run.offense, self.offense),
                (run.defense, self.defense),
                (run.final_score, self.total),
            )
        )


class Spread(Struct, frozen=True):
    """How scores are distributed."""

    count: int
    lowest: float | None
    median: float | None
    p75: float | None
    p90: float | None
    highest: float | None
    mean: float | None
    bins: tuple[int, ...]
    """How many lie in each tenth of the range; full marks in the last."""


class Fared(Struct, frozen=True):
    """How a strategy fares."""

    strategy: str
    count: int
    median: float | None
    """Of the final scores."""
    expected: tuple[float, float] | None
    """The total that the design expects of it."""
    top: int
    """How many of its runs are in the top quartile of the final score."""
    success: float | None
    """The share of its runs that are."""


class Classified(Struct, frozen=True):
    run: Run
    strategy: str
    top: bool


class Monitoring(Struct, frozen=True):
    league: League
    offense: Spread
    defense: Spread
    final: Spread
    correlation: float | None
    """Of offense and defense scores."""
    correlated: int
    """How many runs played both matches."""
    strategies: tuple[Fared, ...]
    advice: tuple[Advice, ...]
    runs: tuple[Classified, ...]


def monitor(board: Board) -> Monitoring:
    """Sum up the standings of a league; whoever is disqualified does not count."""
    runs = [standing.run for standing in board.standings]
    final = [run.final_score for run in runs if run.final_score is not None]
    # Rounded, so that whoever is level with the last of the quartile is in it as well.
    entry = round(percentile(final, 75) or 0.0, ROUNDING)
    classified = tuple(
        Classified(run, classify(run), round(run.final_score or 0.0, ROUNDING) >= entry)
        for run in runs
    )
    both = [
        (run.offense, run.defense)
        for run in runs
        if run.offense is not None and run.defense is not None
    ]
    return Monitoring(
        league=board.league,
        offense=spread([run.offense for run in runs if run.offense is not None], FULL_SCORE),
        defense=spread([run.defense for run in runs if run.defense is not None], FULL_SCORE),
        final=spread(final, 2 * FULL_SCORE),
        correlation=correlation(both),
        correlated=len(both),
        strategies=tuple(_fared(classified)),
        advice=tuple(_advise(runs, _ruleset_of(board.league))),
        runs=classified,
    )


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile, interpolated linearly between the closest ranks."""
    if not values:
        return None
    ordered = sorted(values)
    at, hundredths = divmod((len(ordered) - 1) * percent, 100)
    low, high = ordered[at], ordered[min(at + 1, len(ordered) - 1)]
    return low + (high - low) * hundredths / 100


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Pearson's correlation; None for fewer than two pairs, or where nothing varies."""
    try:
        found = statistics.correlation([a for a, _ in pairs], [b for _, b in pairs])
    except statistics.StatisticsError:
        return None
    return max(-1.0, min(1.0, found))


def spread(scores: Sequence[float], most: int) -> Spread:
    bins = [0] * BINS
    for score in scores:
        bins[min(BINS - 1, max(0, int(score * BINS // most)))] += 1
    return Spread(
        len(scores),
        min(scores, default=None),
        percentile(scores, 50),
        percentile(scores, 75),
        percentile(scores, 90),
        max(scores, default=None),
        fsum(scores) / len(scores) if scores else None,
        tuple(bins),
    )


@cache
def strategies() -> tuple[Strategy, ...]:
    """Return the design's strategies, in the order in which they are tried."""
    text = (files("tiltyard.standings") / "strategies.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["strategy"], tuple[Strategy, ...])


def classify(run: Run) -> str:
    return next((one.name for one in strategies() if one.fits(run)), UNCLASSIFIED)


def _fared(runs: Sequence[Classified]) -> Iterator[Fared]:
    totals: dict[str, tuple[float, float] | None] = {one.name: one.total for one in strategies()}
    for name, total in {**totals, UNCLASSIFIED: None}.items():
        its = [one for one in runs if one.strategy == name]
        top = sum(one.top for one in its)
        yield Fared(
            name,
            len(its),
            percentile([one.run.final_score or 0.0 for one in its], 50),
            total,
            top,
            top / len(its) if its else None,
        )


def _ruleset_of(league: League) -> Ruleset | None:
    """Return the rules that were played by, if this version ships them."""
    try:
        ruleset = load_ruleset(league.ruleset.rpartition("-")[0])
    except RulesetError:
        return None
    return ruleset if ruleset.digest == league.ruleset_digest else None


class _Middle(Struct, frozen=True):
    """The middle of a field, beside what the design expects of the middle rung of a ladder."""

    values: tuple[float, ...]
    what: str
    expected: tuple[int, int | None]
    rung: str

    @property
    def value(self) -> float | None:
        """The median; None where too few have played to tell."""
        return percentile(self.values, 50) if len(self.values) >= LEAST_FOR_ADVICE else None

    @property
    def is_below(self) -> bool:
        return self.value is not None and self.value < self.expected[0]

    @property
    def is_above(self) -> bool:
        low, high = self.expected
        return self.value is not None and self.value > (low if high is None else high)

    @property
    def why(self) -> str:
        if self.value is None:
            return f"{len(self.values)} runs, and it takes {LEAST_FOR_ADVICE} to tell"
        low, high = self.expected
        return (
            f"the median of {len(self.values)} runs is {self.value:g} {self.what}, and {low} to "
            f"{high} are expected of the middle rung, {self.rung}"
        )


def _advise(runs: Sequence[Run], ruleset: Ruleset | None) -> Iterator[Advice]:
    """Yield the design's four conditions, as `calibrate` does, for what was submitted.

    As there, raw points and breaches are compared: the design's scores do not all follow from its
    formulas.
    """
    attack, defense = expectations.MIDDLE_ATTACK, expectations.MIDDLE_DEFENSE
    raw = tuple(run.raw for run in runs if run.raw is not None)
    attacked = _Middle(raw, "raw points", attack.raw, attack.name)
    # Without the rules that were played by, the conditions stand, and no constant is named.
    scale = {} if ruleset is None else rescale(attacked.value or 0.0, ruleset)
    for condition, holds in (("low", attacked.is_below), ("high", attacked.is_above)):
        yield Advice(f"offense scores too {condition}", holds, attacked.why, scale if holds else {})
    breaches = tuple(run.breaches for run in runs if run.breaches is not None)
    held = _Middle(breaches, "breaches", defense.breaches, defense.name)
    depth = search_less(ruleset) if held.is_above and ruleset is not None else {}
    yield Advice("defense scores too low", held.is_above, held.why, depth)
    yield Advice("defense scores too high", held.is_below, f"{held.why}; it moves no constant")
