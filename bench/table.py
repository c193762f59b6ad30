"""The table of results that the benchmarks print and write."""

import platform
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table


class Row(NamedTuple):
    what: str
    peer: str
    ours: str
    ratio: str
    goal: str
    met: bool | None


Measured = tuple[Row, dict[str, Any]]
HEADINGS = ("what", "peer", "Tiltyard", "ratio", "goal", "met")


def show(rows: list[Row]) -> None:
    table = Table(title="Tiltyard beside aicomp-sdk 3.1.2, on the peer's fixtures")
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row[:5], verdict(row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def write_docs(rows: list[Row], path: Path) -> None:
    intro = (
        "This page compares the speed and memory of Tiltyard with its public peer, `aicomp-sdk` "
        "3.1.2, on the peer's packaged fixtures. `bench/run.py --docs` writes it, in one run on "
        f"one machine: Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}. Compare the ratios, not the absolute values."
    )
    lines = [
        "# Benchmarks",
        "",
        *textwrap.wrap(intro, 100, break_on_hyphens=False),
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|---" * len(HEADINGS) + "|",
        *(f"| {' | '.join(row[:5])} | {verdict(row)} |" for row in rows),
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def verdict(row: Row) -> str:
    return "" if row.met is None else "yes" if row.met else "no"
