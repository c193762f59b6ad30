"""`tiltyard leaderboard`: rank runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import DEFAULT_STORE, JsonOption, MarkdownOption
from tiltyard.cli.tables import escape_markdown, print_line, print_table
from tiltyard.cli.terminal import format_number, open_console, print_json
from tiltyard.runs.key import read_key
from tiltyard.standings.leaderboard import Board, Leaderboard, make_leaderboard, read_disqualified
from tiltyard.standings.report_set import Field, FieldError, gather
from tiltyard.studies.calibration_tables import table

HEAD: Final = (
    "rank",
    "name",
    "final",
    "offense",
    "raw",
    "defense",
    "breaches",
    "false positives",
    "runs",
    "run",
    "submission",
)
_LEFT: Final = ("name", "run", "submission", "reason")
_OPTIONAL: Final = ("submission", "runs", "run", "raw", "false positives", "breaches")
"""Columns that a narrow terminal leaves out, the first one first."""
_LISTED: Final = ("name", "final", "run", "reason")
MIXED: Final = (
    "These runs belong to {count} leagues. Runs with different rulesets, keys or versions of "
    "Tiltyard are never ranked together."
)

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
    board = read_leaderboard(runs, disqualified, key, every_run=every_run)
    if as_json:
        print_json(board)
    elif as_markdown:
        typer.echo("\n".join(_markdown(board)))
    else:
        _print_leaderboard(open_console(), board)


def read_leaderboard(
    runs: list[Path] | None, disqualified: Path | None, key: Path | None, *, every_run: bool
) -> Leaderboard:
    """Read and rank the runs that a command's options name."""
    if not runs and not DEFAULT_STORE.exists():
        refuse(
            f"there is no store {DEFAULT_STORE} here; name runs, or play one with "
            "`tiltyard evaluate`"
        )
    with exit_on_error():
        field = gather(runs or [DEFAULT_STORE])
        if key is not None:
            field = _of_key(field, read_key(key).fingerprint)
        reasons = {} if disqualified is None else read_disqualified(disqualified)
        return make_leaderboard(field, reasons, every_run=every_run)


def _of_key(field: Field, fingerprint: str) -> Field:
    found = tuple(run for run in field.runs if run.league.key == fingerprint)
    if not found:
        raise FieldError(f"none of these runs was played with the key {fingerprint}; check --key")
    return Field(found, field.unread)


def _rows(board: Board) -> Iterator[list[str]]:
    for standing in board.standings:
        run = standing.run
        twins = f" (same bytes as {', '.join(standing.same_bytes_as)})"
        yield [
            str(standing.rank),
            run.name + (twins if standing.same_bytes_as else ""),
            format_number(run.final_score),
            format_number(run.offense),
            format_number(run.raw),
            format_number(run.defense),
            format_number(run.breaches),
            "-" if run.benign_trials is None else _of(run.false_positives, run.benign_trials),
            str(standing.runs),
            run.run_id,
            run.submission[:12],
        ]


def _of(some: float | None, every: int) -> str:
    return f"{format_number(some)} of {every}"


def remarks(board: Leaderboard) -> Iterator[str]:
    """Yield what a reader must know beside the ranks."""
    if len(board.boards) > 1:
        yield MIXED.format(count=len(board.boards))
    if not board.boards:
        yield "None of these runs is comparable."
    for word in board.unused:
        yield f"No run or submission is {word}, which the --disqualified file names; check it."
    for unread in board.unread:
        yield f"Skipped: {unread.path}: {unread.reason}"


def _print_leaderboard(console: Console, board: Leaderboard) -> None:
    for each in board.boards:
        print_table(console, each.league.title, HEAD, _rows(each), left=_LEFT, optional=_OPTIONAL)
        if each.disqualified:
            rows = [
                [
                    entry.run.name,
                    format_number(entry.run.final_score),
                    entry.run.run_id,
                    entry.reason,
                ]
                for entry in each.disqualified
            ]
            print_table(console, "Disqualified", _LISTED, rows, left=_LEFT)
    if board.apart:
        rows = [
            [run.name, format_number(run.final_score), run.run_id, "; ".join(run.why_not)]
            for run in board.apart
        ]
        print_table(console, "Not comparable", _LISTED, rows, left=_LEFT)
    for remark in remarks(board):
        print_line(console, remark)


def _markdown(board: Leaderboard) -> Iterator[str]:
    yield "# Leaderboard"
    for each in board.boards:
        yield from ("", f"## {escape_markdown(each.league.title)}", "")
        yield from table(HEAD, [[*map(escape_markdown, row)] for row in _rows(each)])
        if each.disqualified:
            yield from ("", "Disqualified:", "")
            for entry in each.disqualified:
                name, run_id = escape_markdown(entry.run.name), escape_markdown(entry.run.run_id)
                yield f"- {name} ({run_id}): {escape_markdown(entry.reason)}"
    if board.apart:
        yield from ("", "## Not comparable", "")
        for run in board.apart:
            name, run_id = escape_markdown(run.name), escape_markdown(run.run_id)
            yield f"- {name} ({run_id}): {escape_markdown('; '.join(run.why_not))}"
    notes = [*remarks(board)]
    if notes:
        yield ""
        yield from (f"- {escape_markdown(note)}" for note in notes)
