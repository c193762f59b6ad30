"""Monitor a competition: what the design asks organizers to watch.

For each league: how offense and defense scores are distributed, whether they correlate, how the
strategies perform, and whether one of the design's adjustments is due.

Percentiles are interpolated linearly between the closest ranks: with n values in order, the P-th
lies (n - 1) * P / 100 places behind the first. The correlation is Pearson's. Both are None without
enough values.
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
from tiltyard.reporting.calibration_schema import Advice
from tiltyard.reporting.leaderboard_schema import Board, Entry, League
from tiltyard.reporting.monitor_schema import (
    BINS,
    UNCLASSIFIED,
    ClassifiedRun,
    Monitoring,
    Spread,
    StrategyResult,
)
from tiltyard.rulesets.ruleset import Ruleset, RulesetError, load_ruleset
from tiltyard.standings.report_set import ROUNDING
from tiltyard.studies import expectations
from tiltyard.studies.calibration import rescale, search_less

LEAST_FOR_ADVICE: Final = 4
"""Fewer runs have no quartiles, and no constant should change because of them."""


class Strategy(Struct, frozen=True, forbid_unknown_fields=True):
    """The scores that the design expects of a strategy; ranges include both ends."""

    name: str
    offense: tuple[float, float]
    defense: tuple[float, float]
    total: tuple[float, float]

    def fits(self, run: Entry) -> bool:
        return all(
            low <= round(score or 0.0, ROUNDING) <= high
            for score, (low, high) in (
                (run.offense, self.offense),
                (run.defense, self.defense),
                (run.final_score, self.total),
            )
        )


def monitor(board: Board) -> Monitoring:
    """Return the state of a league; disqualified runs do not count."""
    runs = [standing.run for standing in board.standings]
    final = [run.final_score for run in runs if run.final_score is not None]
    # Rounded, so that every run with the score of the quartile's last one is in it as well.
    threshold = round(percentile(final, 75) or 0.0, ROUNDING)
    classified = tuple(
        ClassifiedRun(run, classify(run), round(run.final_score or 0.0, ROUNDING) >= threshold)
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
        strategies=tuple(_results(classified)),
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
    """Return Pearson's correlation; None for fewer than two pairs or constant values."""
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
    """Return the design's strategies, in the order in which `classify` tries them."""
    text = (files("tiltyard.standings") / "strategies.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["strategy"], tuple[Strategy, ...])


def classify(run: Entry) -> str:
    """Return the name of the first strategy whose ranges contain a run's scores."""
    return next((one.name for one in strategies() if one.fits(run)), UNCLASSIFIED)


def _results(runs: Sequence[ClassifiedRun]) -> Iterator[StrategyResult]:
    expected = {one.name: one for one in strategies()}
    for name in (*expected, UNCLASSIFIED):
        own = [one for one in runs if one.strategy == name]
        top = sum(one.top for one in own)
        strategy = expected.get(name)
        yield StrategyResult(
            name,
            len(own),
            percentile([one.run.final_score or 0.0 for one in own], 50),
            None if strategy is None else strategy.total,
            top,
            top / len(own) if own else None,
            None if strategy is None else strategy.offense,
            None if strategy is None else strategy.defense,
        )


def _ruleset_of(league: League) -> Ruleset | None:
    """Return the league's ruleset if this version of Tiltyard ships it."""
    try:
        ruleset = load_ruleset(league.ruleset.rpartition("-")[0])
    except RulesetError:
        return None
    return ruleset if ruleset.digest == league.ruleset_digest else None


class _Middle(Struct, frozen=True):
    """The median of the runs, and what the design expects of the middle rung of a ladder."""

    values: tuple[float, ...]
    what: str
    expected: tuple[int, int | None]
    rung: str

    @property
    def value(self) -> float | None:
        """The median; None with fewer than `LEAST_FOR_ADVICE` runs."""
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
            return f"{len(self.values)} runs, and advice needs at least {LEAST_FOR_ADVICE}"
        low, high = self.expected
        return (
            f"the median {self.what} of {len(self.values)} runs is {self.value:g}; the design "
            f"expects {low} to {high} of the middle rung, {self.rung}"
        )


def _advise(runs: Sequence[Entry], ruleset: Ruleset | None) -> Iterator[Advice]:
    """Yield the design's four conditions for changing a constant, applied to the submitted runs.

    Like `calibrate`, compare raw points and breaches, because not all of the design's scores follow
    from its formulas.
    """
    attack, defense = expectations.MIDDLE_ATTACK, expectations.MIDDLE_DEFENSE
    raw = tuple(run.raw for run in runs if run.raw is not None)
    attacked = _Middle(raw, "raw score", attack.raw, attack.name)
    # Without the ruleset, the conditions can still hold, but there is no constant to change.
    scale = {} if ruleset is None else rescale(attacked.value or 0.0, ruleset)
    for condition, holds in (("low", attacked.is_below), ("high", attacked.is_above)):
        yield Advice(f"offense scores too {condition}", holds, attacked.why, scale if holds else {})
    breaches = tuple(run.breaches for run in runs if run.breaches is not None)
    held = _Middle(breaches, "number of breaches", defense.breaches, defense.name)
    depth = search_less(ruleset) if held.is_above and ruleset is not None else {}
    yield Advice("defense scores too low", held.is_above, held.why, depth)
    yield Advice("defense scores too high", held.is_below, f"{held.why}; it moves no constant")
