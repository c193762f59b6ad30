"""A calibration as a Markdown page: the design's tables, with what was measured beside them."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tiltyard.studies import expectations
from tiltyard.studies.calibration import Calibration, OtherSeed, Point

BAR = 40
WIDTH = 100


def page(calibration: Calibration) -> str:
    """Return the whole page."""
    return "\n".join(_lines(calibration)) + "\n"


def _lines(calibration: Calibration) -> Iterator[str]:
    yield "# Calibration"
    yield ""
    yield from _wrapped(
        "`tiltyard calibrate` writes this page. It compares both ladders, as measured, with what "
        "the competition's design expects. Everything except the seconds is the same on every "
        "machine."
    )
    yield ""
    yield f"Ruleset `{calibration.ruleset}`, seed {calibration.seed}."
    yield ""
    yield "## Guardrails, against the baseline Go-Explore"
    yield ""
    yield from table(*defense_table(calibration))
    yield ""
    yield from _wrapped(
        "Two columns do not affect the score. *Extended* counts the extended benign tasks that "
        "passed untouched. *Under attack* counts the tasks that succeeded without a breach while "
        "the documents they read contained a live injection."
    )
    yield ""
    yield "## Attacks, against the data-flow guardrail"
    yield ""
    yield from table(*attack_table(calibration))
    yield ""
    yield "## Where the design contradicts itself"
    yield ""
    for sentence in calibration.contradictions:
        yield from _wrapped(f"- {sentence}", "  ")
    yield ""
    yield "## Potential adjustments"
    yield ""
    for advice in calibration.advice:
        state = "holds" if advice.holds else "does not hold"
        changes = ", ".join(f"`{name}` to {value}" for name, value in advice.changes.items())
        change = f" Change {changes}." if changes else ""
        yield from _wrapped(f"- *{advice.condition}* {state}: {advice.why}.{change}", "  ")
    if calibration.other_seeds:
        yield ""
        yield "## Other seeds"
        yield ""
        yield from _other_seeds(calibration.other_seeds)
    if calibration.convergence:
        yield ""
        yield "## Convergence of the baseline"
        yield ""
        yield "How breaches and cells of the search grow, over twice the default budget of steps."
        for name, points in calibration.convergence.items():
            yield ""
            yield f"Against {name}:"
            yield ""
            yield "```"
            yield from curve(points)
            yield "```"


def defense_table(calibration: Calibration) -> tuple[list[str], list[list[str]]]:
    head = ["guardrail", "breaches", "expected", "false positives", "expected", "score", "expected"]
    head += ["extended", "under attack", "interactions", "seconds"]
    rows = []
    for row, expected in zip(calibration.defense, expectations.DEFENSE, strict=True):
        failed = _range(expected.failed_operations)
        rows.append(
            [
                row.name,
                str(row.breaches),
                _range(expected.breaches),
                f"{row.false_positives} of {row.benign_trials}",
                f"{failed} of {expectations.OPERATIONS}",
                f"{row.score:.2f}",
                _range(expected.score),
                f"{row.extended_trials - row.extended_failed} of {row.extended_trials}",
                f"{row.useful_under_attack} of {row.attacked_trials}",
                f"{row.interactions:,}",
                f"{row.seconds:.1f}",
            ]
        )
    return head, rows


def attack_table(calibration: Calibration) -> tuple[list[str], list[list[str]]]:
    head = ["attack", "raw", "expected", "score", "expected", "score in `volume`", "cores"]
    head += ["cells", "candidates", "steps", "seconds"]
    rows = []
    for row, expected in zip(calibration.attack, expectations.ATTACK, strict=True):
        rows.append(
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
        )
    return head, rows


def _other_seeds(seeds: Sequence[OtherSeed]) -> Iterator[str]:
    defense = sum(seed.defense_in_order for seed in seeds)
    attack = sum(seed.attack_in_order for seed in seeds)
    closed = sum(seed.breaches[4] == 0 for seed in seeds)
    mean = sum(seed.defense[-1] for seed in seeds) / len(seeds)
    yield from _wrapped(
        f"- In {defense} of {len(seeds)} other worlds the defense ladder keeps its order, in "
        f"{attack} the attack ladder does.",
        "  ",
    )
    yield from _wrapped(
        f"- The data-flow guardrail has no breach in {closed} of {len(seeds)}; the reference "
        f"guardrail scores {mean:.1f} on average.",
        "  ",
    )
    yield ""
    head = ["seed", "breaches, rung by rung", "failed trials", "reference", "raw, rung by rung"]
    yield from table(
        head,
        [
            [
                str(seed.seed),
                " ".join(map(str, seed.breaches)),
                " ".join(map(str, seed.false_positives)),
                f"{seed.defense[-1]:.1f}",
                " ".join(map(str, seed.raw)),
            ]
            for seed in seeds
        ],
    )


def curve(points: Iterable[Point]) -> Iterator[str]:
    """Draw how breaches and cells grow with the steps."""
    points = list(points)
    most = max(point.breaches for point in points) or 1
    yield f"{'steps':>9}  {'cells':>6}  breaches"
    for point in points:
        bar = "#" * (point.breaches * BAR // most)
        yield f"{point.steps:>9,}  {point.cells:>6,}  {point.breaches:>3} {bar}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _range(ends: tuple[float, float | None]) -> str:
    low, high = ends
    if high is None:
        return f"{low:g}+"
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
