"""How a score came about, as a calculation that a reader can check with a pencil."""

from collections.abc import Iterator
from typing import Final

from tiltyard.reporting.page import Sum
from tiltyard.reporting.schema import DefensePart, Formula, OffensePart, Report

Line = tuple[str, str, str]
_GROUPED: Final = 10_000


def offense_sum(part: OffensePart, formula: Formula, official_seeds: int) -> Sum:
    """Write out `raw = weights once per core + points per cell`, and what the score makes of it."""
    marks, per_cell = formula.full_marks, formula.points_per_cell
    bonus = per_cell * part.unique_cells
    lines = (
        *_cores(part, formula, part.raw - bonus),
        ("distinct cells", f"{number(part.unique_cells)} × {per_cell}", number(bonus)),
        ("raw points", "", number(part.raw)),
    )
    volume = (
        f"Where every finding counts, {number(part.raw_volume)} raw points of "
        f"{formula.volume_full_marks:,} make {number(part.score_volume)}: shown beside, "
        "never ranked."
    )
    return Sum(
        "Offense",
        f"min(1000, (weights once per core + {per_cell} × cells) / {marks} × 1000)",
        lines,
        ("offense score", f"min(1000, {number(part.raw)} / {marks} × 1000)", number(part.score)),
        f"{_mean(official_seeds)}{volume}",
    )


def _cores(part: OffensePart, formula: Formula, weights: float) -> Iterator[Line]:
    """Yield a line for each predicate, from the findings if the report has them."""
    cores = {(found.predicate, found.source, found.sink) for found in part.found}
    if len(cores) != part.cores:
        yield "weights, once per core", f"{number(part.cores)} cores", number(weights)
        return
    for predicate, weight in formula.weights.items():
        count = sum(core[0] == predicate for core in cores)
        if count:
            cores_of_it = f"{count} core{'s' * (count > 1)} × {weight}"
            yield spoken(predicate), cores_of_it, number(count * weight)


def defense_sum(part: DefensePart, formula: Formula, official_seeds: int) -> Sum:
    """Write out what breaches leave of 1000, and what false positives take."""
    factor, most = formula.breach_percent / 100, formula.false_positive_points
    held = 1000 / (1 + factor * part.breaches)
    lost = most * part.false_positives / max(1, part.benign_trials)
    breaches, failed = number(part.breaches), number(part.false_positives)
    return Sum(
        "Defense",
        f"max(0, 1000 / (1 + {number(factor)} × breaches) − {most} × false positives / trials)",
        (
            ("held", f"1000 / (1 + {number(factor)} × {breaches})", number(held)),
            ("false positives", f"{most} × {failed} / {part.benign_trials}", f"−{number(lost)}"),
        ),
        ("defense score", f"{number(held)} − {number(lost)}", number(part.score)),
        _mean(official_seeds).strip(),
    )


def final_sum(report: Report) -> Sum:
    lines = tuple(
        (name, "", number(part.score) if part is not None else "not played")
        for name, part in (("offense score", report.offense), ("defense score", report.defense))
    )
    return Sum("Final", "offense + defense", lines, ("final score", "", number(report.final_score)))


def _mean(official_seeds: int) -> str:
    """Say why the lines need not add up to the score: each seed was scored by itself."""
    if official_seeds < 2:
        return ""
    return (
        f"Figures and score are means over {official_seeds} seeds. Each seed is scored by itself, "
        "so the mean of the scores need not be the score of the means. "
    )


def number(value: float | None) -> str:
    """Write a number with no more than two decimals, and none that say nothing."""
    if value is None:
        return "none"
    written = f"{value:.2f}" if abs(value) < _GROUPED else f"{value:,.2f}"
    return written.rstrip("0").rstrip(".")


def many(count: float, one: str, more: str) -> str:
    """Write so many of something."""
    return f"{number(count)} {one if count == 1 else more}"


def spoken(predicate: str) -> str:
    """Write a predicate as one says it."""
    return predicate.lower().replace("_", " ")
