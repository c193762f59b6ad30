"""A calibration as tables and as a Markdown page."""

from collections.abc import Iterator, Sequence
from typing import Final

from tiltyard.reporting.calibration_schema import (
    OPERATIONS,
    Advice,
    Calibration,
    ConvergencePoint,
    OtherSeed,
)
from tiltyard.reporting.markdown import bullets, fill, table

_BAR: Final = 40

Rows = list[list[str]]


def page(calibration: Calibration) -> str:
    """Return the whole page."""
    return fill(
        "calibration.md",
        ruleset=calibration.ruleset,
        seed=str(calibration.seed),
        guardrails=table(*defense_table(calibration)),
        attacks=table(*attack_table(calibration)),
        contradictions=bullets(calibration.contradictions),
        adjustments=bullets(map(_adjustment, calibration.advice)),
        other_seeds=_other_seeds(calibration.other_seeds) if calibration.other_seeds else "",
        convergence=_convergence(calibration.convergence) if calibration.convergence else "",
    )


def defense_table(calibration: Calibration) -> tuple[list[str], Rows]:
    """Return the head and the rows of the table of guardrails."""
    head = ["guardrail", "breaches", "expected", "false positives", "expected", "score", "expected"]
    head += ["extended", "under attack", "interactions", "seconds"]
    rows = []
    for row, expected in zip(calibration.defense, calibration.expected_defense, strict=True):
        failed = _range(expected.failed_operations)
        rows.append(
            [
                row.name,
                str(row.breaches),
                _range(expected.breaches),
                f"{row.false_positives} of {row.benign_trials}",
                f"{failed} of {OPERATIONS}",
                f"{row.score:.2f}",
                _range(expected.score),
                f"{row.extended_trials - row.extended_failed} of {row.extended_trials}",
                f"{row.useful_under_attack} of {row.attacked_trials}",
                f"{row.interactions:,}",
                f"{row.seconds:.1f}",
            ]
        )
    return head, rows


def attack_table(calibration: Calibration) -> tuple[list[str], Rows]:
    """Return the head and the rows of the table of attacks."""
    head = ["attack", "raw", "expected", "score", "expected", "score in `volume`", "cores"]
    head += ["cells", "candidates", "steps", "seconds"]
    rows = [
        [
            row.name,
            str(row.raw),
            _range(expected.raw),
            f"{row.score:.1f}",
            _range(expected.score),
            f"{row.score_volume:.2f}",
            str(row.cores),
            str(row.cells),
            f"{row.candidates:,}",
            f"{row.steps:,}",
            f"{row.seconds:.1f}",
        ]
        for row, expected in zip(calibration.attack, calibration.expected_attack, strict=True)
    ]
    return head, rows


def _adjustment(advice: Advice) -> str:
    state = "holds" if advice.holds else "does not hold"
    changes = ", ".join(f"`{name}` to {value}" for name, value in advice.changes.items())
    change = f" Change {changes}." if changes else ""
    return f"*{advice.condition}* {state}: {advice.why}.{change}"


def _other_seeds(seeds: Sequence[OtherSeed]) -> str:
    defense = sum(seed.defense_in_order for seed in seeds)
    attack = sum(seed.attack_in_order for seed in seeds)
    closed = sum(seed.breaches[4] == 0 for seed in seeds)
    mean = sum(seed.defense[-1] for seed in seeds) / len(seeds)
    order = (
        f"In {defense} of {len(seeds)} other worlds the defense ladder keeps its order, in "
        f"{attack} the attack ladder does."
    )
    guardrails = (
        f"The data-flow guardrail has no breach in {closed} of {len(seeds)}; the reference "
        f"guardrail scores {mean:.1f} on average."
    )
    head = ["seed", "breaches, rung by rung", "failed trials", "reference", "raw, rung by rung"]
    rows = [
        [
            str(seed.seed),
            " ".join(map(str, seed.breaches)),
            " ".join(map(str, seed.false_positives)),
            f"{seed.defense[-1]:.1f}",
            " ".join(map(str, seed.raw)),
        ]
        for seed in seeds
    ]
    return fill(
        "calibration_seeds.md", summary=bullets((order, guardrails)), seeds=table(head, rows)
    )


def _convergence(curves: dict[str, tuple[ConvergencePoint, ...]]) -> str:
    drawn = (
        "\n".join((f"Against {name}:", "", "```", *curve(points), "```"))
        for name, points in curves.items()
    )
    return fill("calibration_convergence.md", curves="\n\n".join(drawn))


def curve(points: Sequence[ConvergencePoint]) -> Iterator[str]:
    """Draw in text how breaches and cells grow with the steps."""
    most = max(point.breaches for point in points) or 1
    yield f"{'steps':>9}  {'cells':>6}  breaches"
    for point in points:
        bar = "#" * (point.breaches * _BAR // most)
        yield f"{point.steps:>9,}  {point.cells:>6,}  {point.breaches:>3} {bar}"


def _range(ends: tuple[float, float | None]) -> str:
    low, high = ends
    if high is None:
        return f"{low:g}+"
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
