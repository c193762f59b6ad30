"""`tiltyard history`: list the finished runs."""

from typing import Final

from rich.table import Table
from rich.text import Text

from tiltyard.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from tiltyard.cli.tables import choose_columns, left_out, measure_columns, print_line
from tiltyard.cli.terminal import format_number, open_console, print_json, safe
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.reporting.numbers import moment
from tiltyard.reporting.schema import DefensePart, OffensePart, Report, summary
from tiltyard.runs.store import Store

_NUMBERS: Final = ("final", "offense", "defense")
_HEAD: Final = (
    "run",
    "date (UTC)",
    "submission",
    *_NUMBERS,
    "opponent",
    "comparable",
    "ruleset",
    "budget",
)
_NAME: Final = _HEAD.index("submission")
_WHOLE: Final = ("run", *_NUMBERS)
"""Columns that never wrap."""
_COLUMN_GAP: Final = 2
_NAME_WIDTH: Final = 24
"""Names up to this length stay whole."""
_OPTIONAL: Final = ("ruleset", "budget", "comparable")
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
    widths = measure_columns([*map(Text, _HEAD)], rows, _COLUMN_GAP)
    shown = choose_columns(console.width, _HEAD, widths, _OPTIONAL)
    room = console.width - sum(_least(rows, widths, at) for at in shown if at != _NAME)
    table = Table(box=None, pad_edge=False)
    for name in (_HEAD[at] for at in shown):
        table.add_column(
            name,
            justify="right" if name in _NUMBERS else "left",
            no_wrap=name in _WHOLE,
            overflow="fold",
            min_width=_name_width(widths[_NAME], room) if name == "submission" else None,
        )
    for row in rows:
        table.add_row(*(row[at] for at in shown))
    console.print(table)
    missing = [name for at, name in enumerate(_HEAD) if at not in shown]
    if missing:
        print_line(console, left_out(missing))


def _least(rows: list[list[Text]], widths: list[int], at: int) -> int:
    """Return the least width of a column with its gap: that of its longest word."""
    if _HEAD[at] in _WHOLE:
        return widths[at]
    words = [_HEAD[at], *(row[at].plain for row in rows)]
    return _COLUMN_GAP + max(len(word) for text in words for word in text.split())


def _name_width(width: int, room: int) -> int:
    """Return the least width of a name without its gap, so that it stays whole if there is room."""
    return max(1, min(_NAME_WIDTH, width - _COLUMN_GAP, room))


def _row(report: Report) -> list[str]:
    scores = [None if part is None else part.score for part in _parts(report)]
    budget = report.setting.budget + (", official seeds" if report.setting.key else "")
    return [
        safe(report.run_id),
        safe(moment(report.started).removesuffix(" UTC")) or "-",
        safe(report.submission.name) + (" (official)" if report.setting.key else ""),
        format_number(report.final_score),
        *map(format_number, scores),
        safe(", ".join(_opponents(report))) or "-",
        "yes" if report.comparable else "no",
        safe(report.ruleset),
        safe(budget),
    ]


def _parts(report: Report) -> tuple[OffensePart | DefensePart | ArenaPart | None, ...]:
    return report.offense, report.defense or report.arena


def _opponents(report: Report) -> list[str]:
    """Return the guardrail of the offense match and the attack of the defense match."""
    setting, tracks = report.setting, report.submission.tracks
    offense = [setting.offense_opponent] if "offense" in tracks else []
    return offense + ([setting.defense_opponent] if "defense" in tracks else [])
