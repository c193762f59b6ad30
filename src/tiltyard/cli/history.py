"""`tiltyard history`: list the finished runs."""

from typing import Final

from rich.table import Table
from rich.text import Text

from tiltyard.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from tiltyard.cli.tables import choose_columns
from tiltyard.cli.terminal import format_number, open_console, print_json, safe
from tiltyard.reporting.schema import Report, summary
from tiltyard.runs.store import Store

_NUMBERS: Final = ("final", "offense", "defense")
_HEAD: Final = ("run", "submission", *_NUMBERS, "comparable", "ruleset", "budget")
_COLUMN_GAP: Final = 2
_OPTIONAL: Final = ("ruleset", "budget")
"""Columns that a narrow terminal leaves out, the first one first."""


def run(*, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """List the finished runs of a store, newest first.

    Every command that takes a run id also takes its first digits, if no other run begins with them.

    Example: tiltyard history
    """
    reports = [report for _, report in Store(store).all()]
    if as_json:
        print_json([*map(summary, reports)])
        return
    console = open_console()
    if not reports:
        console.print(
            f"No finished runs in {safe(store)}. Play one with `tiltyard evaluate SUBMISSION`, or "
            "name another directory with --store."
        )
        return
    rows = [[*map(Text, _row(report))] for report in reports]
    shown = choose_columns(console.width, _HEAD, rows, _OPTIONAL, frame=_COLUMN_GAP)
    table = Table(box=None, pad_edge=False)
    for name in (_HEAD[at] for at in shown):
        table.add_column(
            name,
            justify="right" if name in _NUMBERS else "left",
            no_wrap=name == "run",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(row[at] for at in shown))
    console.print(table)


def _row(report: Report) -> list[str]:
    scores = [None if part is None else part.score for part in (report.offense, report.defense)]
    budget = report.setting.budget + (", official seeds" if report.setting.key else "")
    return [
        safe(report.run_id),
        safe(report.submission.name),
        format_number(report.final_score),
        *map(format_number, scores),
        "yes" if report.comparable else "no",
        safe(report.ruleset),
        safe(budget),
    ]
