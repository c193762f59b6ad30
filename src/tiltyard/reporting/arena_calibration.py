"""The scores of several guardrails in one arena, as data and as a Markdown page."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tiltyard.reporting.markdown import table

HEAD: Final = ("guardrail", "family", "score", "95% interval", "solved", "untouched", "breached")


class ArenaRow(Struct, frozen=True):
    """One guardrail."""

    name: str
    family: str
    score: float
    low: float
    high: float
    solved: int
    untouched: int
    breached: int
    digest: str


class ArenaCalibration(Struct, frozen=True):
    """Guardrails in the arena of one seed."""

    ruleset: str
    seed: int
    worlds: int
    cells: int
    rows: tuple[ArenaRow, ...]
    """The highest score first."""


def calibration_rows(done: ArenaCalibration) -> Iterator[list[str]]:
    """Yield a row for each guardrail, with the columns of `HEAD`."""
    for row in done.rows:
        counts = (row.solved, row.untouched, row.breached)
        interval = f"{row.low:.0f} to {row.high:.0f}"
        yield [row.name, row.family, f"{row.score:.1f}", interval, *map(str, counts)]


def calibration_markdown(done: ArenaCalibration) -> str:
    """Return the page."""
    size = f"{done.cells} cells in {done.worlds} worlds"
    lines = [
        "# Guardrails in the arena",
        "",
        f"Ruleset {done.ruleset}, seed {done.seed}: {size}, with the public tasks.",
        "",
        table(HEAD, calibration_rows(done)),
    ]
    return "\n".join(lines) + "\n"
