"""`tiltyard leaderboard`: rank runs."""

from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import structs
from rich.console import Console

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import DEFAULT_STORE, JsonOption, MarkdownOption
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import format_number, open_console, output_width, print_json
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.leaderboard_page import markdown, page, remarks, rows, titles
from tiltyard.reporting.leaderboard_schema import Leaderboard
from tiltyard.reporting.page import relative_link
from tiltyard.runs.key import read_key
from tiltyard.runs.store import PAGE
from tiltyard.standings.leaderboard import make_leaderboard, read_disqualified
from tiltyard.standings.report_set import ReportSet, ReportSetError, gather

_LEFT: Final = ("name", "run", "submission", "reason")
_OPTIONAL: Final = ("submission", "runs", "run", "raw", "false positives", "breaches")
"""Columns that a narrow terminal leaves out, the first one first."""
_LISTED: Final = ("name", "final", "run", "reason")

Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN",
        help="Reports, directories of runs, or stores. Without any, the store .tiltyard.",
        show_default=False,
    ),
]
Disqualified = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A TOML file that gives a reason for each disqualified run id or submission digest.",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Rank only the official runs of this organizer's key."),
]
EveryRun = Annotated[
    bool,
    typer.Option("--every-run", help="Rank every run, not only the best run of each submission."),
]


def run(
    runs: Runs = None,
    *,
    disqualified: Disqualified = None,
    key: Key = None,
    every_run: EveryRun = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write an HTML page to this file: searchable, sortable, with a link to each run.",
        ),
    ] = None,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
) -> None:
    """Rank runs by final score, then by raw offense points, breaches and false positives.

    Each submission has one rank, from its best run. Ties share a rank (1, 2, 2, 4). Runs that are
    not comparable are listed below the ranks, with the reason. The command only reads reports.

    Exit codes:

    - 0: the leaderboard is printed.
    - 2: there is nothing to rank, or a file cannot be used.

    Example: tiltyard leaderboard .tiltyard --disqualified disqualified.toml --markdown
    """
    reports = read_reports(runs, key)
    board = rank_reports(reports, disqualified, every_run=every_run)
    if html is not None:
        write_page(html, page(board, _links(reports, html)))
    if as_json:
        print_json(board)
    elif as_markdown:
        typer.echo(markdown(board), nl=False)
    else:
        console = open_console()
        _print_leaderboard(console, board)
        if html is not None:
            print_line(console, f"written: {html}")


def write_page(path: Path, text: str) -> None:
    """Write an HTML page, or exit with a sentence that says why it cannot be written."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}")


def _links(reports: ReportSet, page_file: Path) -> dict[str, str]:
    """Return a link to the page of each run, or to its report if there is no page."""
    places = {
        run_id: beside if (beside := report.with_name(PAGE)).is_file() else report
        for run_id, report in reports.files.items()
    }
    return {run_id: relative_link(place, page_file) for run_id, place in places.items()}


def read_reports(runs: list[Path] | None, key: Path | None) -> ReportSet:
    """Read the reports that a command's options name."""
    if not runs and not DEFAULT_STORE.exists():
        refuse(
            f"there is no store {DEFAULT_STORE} here; name runs, or play one with "
            "`tiltyard evaluate`"
        )
    with exit_on_error():
        reports = gather(runs or [DEFAULT_STORE])
        return reports if key is None else _of_key(reports, read_key(key).fingerprint)


def rank_reports(reports: ReportSet, disqualified: Path | None, *, every_run: bool) -> Leaderboard:
    """Rank reports, without the runs that the file of disqualifications names."""
    with exit_on_error():
        reasons = {} if disqualified is None else read_disqualified(disqualified)
        return make_leaderboard(reports, reasons, every_run=every_run)


def _of_key(reports: ReportSet, fingerprint: str) -> ReportSet:
    found = tuple(run for run in reports.runs if run.league.key == fingerprint)
    if not found:
        raise ReportSetError(
            f"none of these runs was played with the key {fingerprint}; check --key"
        )
    return structs.replace(reports, runs=found)


def _print_leaderboard(console: Console, board: Leaderboard) -> None:
    for each in board.boards:
        print_table(
            console,
            each.league.title,
            titles(),
            rows(each),
            left=_LEFT,
            optional=_OPTIONAL,
            folding="name",
            width=output_width(),
        )
        if each.disqualified:
            listed = [
                [
                    entry.run.name,
                    format_number(entry.run.final_score),
                    entry.run.run_id,
                    entry.reason,
                ]
                for entry in each.disqualified
            ]
            print_table(console, "Disqualified", _LISTED, listed, left=_LEFT, width=output_width())
    if board.apart:
        listed = [
            [run.name, format_number(run.final_score), run.run_id, "; ".join(run.why_not)]
            for run in board.apart
        ]
        print_table(console, "Not comparable", _LISTED, listed, left=_LEFT, width=output_width())
    for remark in remarks(board):
        print_line(console, remark)
