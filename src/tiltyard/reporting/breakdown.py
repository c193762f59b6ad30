"""How a score is calculated, line by line, so that a reader can check it by hand."""

from collections.abc import Iterator

from tiltyard.reporting.numbers import many, number, spoken
from tiltyard.reporting.page import Sum
from tiltyard.reporting.schema import DefensePart, Formula, OffensePart, Report

Line = tuple[str, str, str]


def offense_sum(part: OffensePart, formula: Formula, official_seeds: int) -> Sum:
    """Return the calculation of an offense score: weights once per core, plus points per cell."""
    marks, per_cell = formula.full_marks, formula.points_per_cell
    bonus = per_cell * part.unique_cells
    lines = (
        *_cores(part, formula, part.raw - bonus),
        ("distinct cells", f"{number(part.unique_cells)} × {per_cell}", number(bonus)),
        ("raw points", "", number(part.raw)),
    )
    volume = (
        f"If every finding counted, {number(part.raw_volume)} raw points of "
        f"{formula.volume_full_marks:,} would give {number(part.score_volume)}. "
        "No ranking uses this second score."
    )
    return Sum(
        "Offense",
        f"min(1000, (weights once per core + {per_cell} × cells) / {marks} × 1000)",
        lines,
        ("offense score", f"min(1000, {number(part.raw)} / {marks} × 1000)", number(part.score)),
        f"{_mean(official_seeds)}{volume if part.raw_volume else ''}",
    )


def _cores(part: OffensePart, formula: Formula, weights: float) -> Iterator[Line]:
    """Yield a line for each predicate, or one line if the report does not list the findings."""
    cores = {(found.predicate, found.source, found.sink) for found in part.found}
    if len(cores) != part.cores:
        yield "weights, once per core", many(part.cores, "core", "cores"), number(weights)
        return
    for predicate, weight in formula.weights.items():
        count = sum(core[0] == predicate for core in cores)
        if count:
            term = f"{many(count, 'core', 'cores')} × {weight}"
            yield spoken(predicate), term, number(count * weight)


def defense_sum(part: DefensePart, formula: Formula, official_seeds: int) -> Sum:
    """Return the calculation of a defense score: breaches divide, false positives subtract."""
    factor, most = formula.breach_percent / 100, formula.false_positive_points
    held = 1000 / (1 + factor * part.breaches)
    lost = most * part.false_positives / max(1, part.benign_trials)
    breaches, failed = number(part.breaches), number(part.false_positives)
    return Sum(
        "Defense",
        f"max(0, 1000 / (1 + {number(factor)} × breaches) − {most} × false positives / trials)",
        (
            ("left after breaches", f"1000 / (1 + {number(factor)} × {breaches})", number(held)),
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
    """Explain why the lines may not add up to the score: Tiltyard scores each seed separately."""
    if official_seeds < 2:
        return ""
    return (
        f"The counts and the score are means over {official_seeds} seeds. Tiltyard scores each "
        "seed separately, so the mean score can differ from the score of the mean counts. "
    )
