"""`tiltyard leaderboard`: who is ahead."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from tiltyard.cli.problems import WRONG_USE, in_one_sentence, refuse
from tiltyard.cli.screen import DEFAULT_STORE, number, open_console
from tiltyard.cli.showing import escaped, print_table, say
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
_WORDS: Final = ("name", "run", "submission", "reason")
_LISTED: Final = ("name", "final", "run", "reason")
MIXED: Final = (
    "These runs are of {count} leagues. Rulesets, keys and versions of the engine are never mixed, "
    "so each league has its own ranks."
)

Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Reports, directories of runs, or stores; the store here if none is named.",
        show_default=False,
    ),
]
Disqualified = Annotated[
    Path | None,
    typer.Option(help="A TOML file: run ids or digests of submissions, each with a reason."),
]
Key = Annotated[
    Path | None, typer.Option(help="Only the official runs of this key; a file as of `evaluate`.")
]
EveryRun = Annotated[
    bool, typer.Option("--every-run", help="Every run of a name, not its best alone.")
]


def run(
    runs: Runs = None,
    *,
    disqualified: Disqualified = None,
    key: Key = None,
    every_run: EveryRun = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Rank comparable runs: by final score, then raw offense score, breaches, false positives.

    A name has one place, that of its best run; whoever is level has the same rank. Runs that
    cannot be compared stand apart, with the reason. Ends with 0, and with 2 if there is nothing to
    rank or a file cannot be used.

    Example: tiltyard leaderboard .tiltyard --disqualified disqualified.toml --markdown
    """
    board = read_leaderboard(runs, disqualified, key, every_run=every_run)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(board), indent=1).decode())
    elif as_markdown:
        typer.echo("\n".join(_markdown(board)))
    else:
        _show(open_console(), board)


def read_leaderboard(
    runs: list[Path] | None, disqualified: Path | None, key: Path | None, *, every_run: bool
) -> Leaderboard:
    """Read and rank what a command was asked for, or end with a sentence."""
    if not runs and not DEFAULT_STORE.exists():
        refuse(
            "There are no runs here. Name some, or make one with `tiltyard evaluate`.", WRONG_USE
        )
    with in_one_sentence():
        field = gather(runs or [DEFAULT_STORE])
        if key is not None:
            field = _of_key(field, read_key(key).fingerprint)
        reasons = {} if disqualified is None else read_disqualified(disqualified)
        return make_leaderboard(field, reasons, every_run=every_run)


def _of_key(field: Field, fingerprint: str) -> Field:
    found = tuple(run for run in field.runs if run.league.key == fingerprint)
    if not found:
        raise FieldError(f"none of these runs was played with the key {fingerprint}")
    return Field(found, field.unread)


def _rows(board: Board) -> Iterator[list[str]]:
    for standing in board.standings:
        run = standing.run
        twins = f" (same bytes as {', '.join(standing.same_bytes_as)})"
        yield [
            str(standing.rank),
            run.name + (twins if standing.same_bytes_as else ""),
            number(run.final_score),
            number(run.offense),
            number(run.raw),
            number(run.defense),
            number(run.breaches),
            "-" if run.benign_trials is None else _of(run.false_positives, run.benign_trials),
            str(standing.runs),
            run.run_id,
            run.submission[:12],
        ]


def _of(some: float | None, every: int) -> str:
    return f"{number(some)} of {every}"


def remarks(board: Leaderboard) -> Iterator[str]:
    """Yield what must be said beside the ranks."""
    if len(board.boards) > 1:
        yield MIXED.format(count=len(board.boards))
    if not board.boards:
        yield "None of these runs can be compared."
    for word in board.unused:
        yield f"Nothing here is {word}, which is to be disqualified: is it spelled right?"
    for unread in board.unread:
        yield f"Passed over: {unread.path}: {unread.reason}"


def _show(console: Console, board: Leaderboard) -> None:
    for each in board.boards:
        print_table(console, each.league.title, HEAD, _rows(each), _WORDS)
        if each.disqualified:
            rows = [
                [entry.run.name, number(entry.run.final_score), entry.run.run_id, entry.reason]
                for entry in each.disqualified
            ]
            print_table(console, "Disqualified", _LISTED, rows, _WORDS)
    if board.apart:
        rows = [
            [run.name, number(run.final_score), run.run_id, "; ".join(run.why_not)]
            for run in board.apart
        ]
        print_table(console, "Not comparable", _LISTED, rows, _WORDS)
    for remark in remarks(board):
        say(console, remark)


def _markdown(board: Leaderboard) -> Iterator[str]:
    yield "# Leaderboard"
    for each in board.boards:
        yield from ("", f"## {escaped(each.league.title)}", "")
        yield from table(HEAD, [[*map(escaped, row)] for row in _rows(each)])
        if each.disqualified:
            yield from ("", "Disqualified:", "")
            for entry in each.disqualified:
                name, run_id = escaped(entry.run.name), escaped(entry.run.run_id)
                yield f"- {name} ({run_id}): {escaped(entry.reason)}"
    if board.apart:
        yield from ("", "## Not comparable", "")
        for run in board.apart:
            why_not = "; ".join(run.why_not)
            yield f"- {escaped(run.name)} ({escaped(run.run_id)}): {escaped(why_not)}"
    notes = [*remarks(board)]
    if notes:
        yield ""
        yield from (f"- {escaped(note)}" for note in notes)
