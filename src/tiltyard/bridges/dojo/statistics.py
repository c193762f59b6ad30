"""Intervals and concordance. The same results give the same numbers on every machine.

A user task is the unit of all resampling: the pairs of one task resemble each other. Every
replicate draws as many tasks in each suite as the suite has, with replacement, and all guardrails
see the same draws, so that differences between guardrails are paired.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from tiltyard.foundation.draw import Draw
from tiltyard.reporting.dojo_schema import Concordance, Share

REPLICATES: Final = 1999
"""So many that the 2.5% and the 97.5% points are replicates themselves."""
MIN_DIFFERENCE: Final = 0.05
_TAIL: Final = (REPLICATES + 1) // 40
_KEY: Final = "dojo"


class Tally(Struct, frozen=True):
    """The pairs of one user task, for each guardrail the number that it held, in one order."""

    suite: str
    task: str
    pairs: int
    held: tuple[int, ...]


class Resampled:
    """The shares of all guardrails, as measured and in every replicate."""

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self.pairs = sum(one.pairs for one in tallies)
        self._measured = _shares(tallies)
        self._replicates = [_shares(drawn) for drawn in _draws(tallies)] if self.pairs else []

    def share(self, guardrail: int) -> Share:
        if not self.pairs:
            return Share(0.0, 0.0, 1.0, 0)
        low, high = interval(one[guardrail] for one in self._replicates)
        return Share(self._measured[guardrail], low, high, self.pairs)

    def difference(self, first: int, second: int) -> float:
        return self._measured[first] - self._measured[second]

    def differences(self, first: int, second: int) -> list[float]:
        """Return the difference of two guardrails in every replicate."""
        return [one[first] - one[second] for one in self._replicates]

    def is_resolved(self, first: int, second: int) -> bool:
        """Tell whether two guardrails differ clearly: by enough, and not by chance."""
        if not self.pairs or abs(self.difference(first, second)) < MIN_DIFFERENCE:
            return False
        low, high = interval(self.differences(first, second))
        return low > 0 or high < 0


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Return the 95% interval of a statistic, by its percentiles over all replicates."""
    ordered = sorted(values)
    tail = len(ordered) * _TAIL // REPLICATES
    return ordered[max(tail - 1, 0)], ordered[min(len(ordered) - tail, len(ordered) - 1)]


def _draws(tallies: Sequence[Tally]) -> Iterable[list[Tally]]:
    suites: dict[str, list[Tally]] = {}
    for one in tallies:
        suites.setdefault(one.suite, []).append(one)
    for number in range(REPLICATES):
        draw = Draw(_KEY, number)
        yield [
            tasks[at]
            for name, tasks in suites.items()
            for stream in (draw.branch(name),)
            for at in (stream.below(len(tasks)) for _ in tasks)
        ]


def _shares(tallies: Sequence[Tally]) -> list[float]:
    pairs = sum(one.pairs for one in tallies)
    columns = zip(*(one.held for one in tallies), strict=True)
    return [sum(column) / pairs for column in columns] if pairs else []


def concordance(
    resampled: Resampled, families: Sequence[str], arena: Sequence[float | None]
) -> Concordance | None:
    """Compare the order of guardrails in the arena with their order on the yardstick.

    `families` and `arena` give the family and the arena's defense score of each guardrail; None for
    a guardrail that the arena has not scored. Return None if no pair is resolved.

    The interval resamples families and tasks: a list of other families could have been chosen.
    """
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for first, second in combinations(range(len(families)), 2):
        known = arena[first] is not None and arena[second] is not None
        crossed = families[first] != families[second]
        if known and crossed and resampled.is_resolved(first, second):
            kin = tuple(sorted((families[first], families[second])))
            pairs.setdefault((kin[0], kin[1]), []).append((first, second))
    if not pairs:
        return None
    gaps = [0.0 if one is None else one for one in arena]
    measured, replicates = _agreements(resampled, pairs, gaps)
    value = sum(measured.values()) / len(measured)
    low, high = interval(_resample_families([*dict.fromkeys(families)], replicates, value))
    return Concordance(value, low, high, sum(map(len, pairs.values())), len(pairs))


_Kin = tuple[str, str]


def _agreements(
    resampled: Resampled, pairs: Mapping[_Kin, list[tuple[int, int]]], arena: Sequence[float]
) -> tuple[dict[_Kin, float], list[dict[_Kin, float]]]:
    """Return the agreement of each pair of families, as measured and in every replicate."""
    measured: dict[_Kin, float] = {}
    replicates: list[dict[_Kin, float]] = [{} for _ in range(REPLICATES)]
    for kin, members in pairs.items():
        gaps = [arena[first] - arena[second] for first, second in members]
        found = [resampled.difference(*one) for one in members]
        measured[kin] = _mean_agreement(gaps, found)
        columns = zip(*(resampled.differences(*one) for one in members), strict=True)
        for replicate, differences in zip(replicates, columns, strict=True):
            replicate[kin] = _mean_agreement(gaps, differences)
    return measured, replicates


def _mean_agreement(gaps: Sequence[float], differences: Sequence[float]) -> float:
    agreed = (_agreement(*both) for both in zip(gaps, differences, strict=True))
    return sum(agreed) / len(gaps)


def _agreement(gap: float, difference: float) -> float:
    if gap == 0 or difference == 0:
        return 0.5
    return 1.0 if (gap > 0) == (difference > 0) else 0.0


def _resample_families(
    families: Sequence[str], replicates: Sequence[Mapping[_Kin, float]], value: float
) -> Iterable[float]:
    for number, agreements in enumerate(replicates):
        draw = Draw(_KEY, "families", number)
        drawn = [draw.choice(families) for _ in families]
        weights = {kin: drawn.count(kin[0]) * drawn.count(kin[1]) for kin in agreements}
        total = sum(weights.values())
        # A draw without two families to compare says nothing new.
        yield sum(weights[kin] * agreements[kin] for kin in weights) / total if total else value
