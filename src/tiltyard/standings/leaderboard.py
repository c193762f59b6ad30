"""Rank the runs that can be compared.

A league is one ruleset, one key and one version of Tiltyard; each league has its own ranks. A name
appears once, with its best run. Runs are ranked by final score, then by raw offense points (which
still differ where the offense score is capped), then by fewer breaches, then by fewer false
positives. Ties share a rank (1, 2, 2, 4).

`reporting.leaderboard_page` defines the columns that a leaderboard shows.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from tiltyard.reporting.leaderboard_schema import (
    Board,
    Disqualified,
    Entry,
    Leaderboard,
    League,
    Standing,
)
from tiltyard.standings.report_set import ROUNDING, ReportSet, leagues_of

LEAST_DIGITS: Final = 8
MAX_FILE_BYTES: Final = 1_000_000


class DisqualificationError(ValueError):
    """The file of disqualifications cannot be used; the message says why."""


def merit(run: Entry) -> tuple[float, ...]:
    """Return the sort key of a run; a smaller key is better.

    A track that was not played has no points, and loses every tie.
    """
    return (
        -round(run.final_score or 0.0, ROUNDING),
        -round(run.raw or 0.0, ROUNDING),
        inf if run.breaches is None else round(run.breaches, ROUNDING),
        inf if run.false_positives is None else round(run.false_positives, ROUNDING),
    )


def make_leaderboard(
    reports: ReportSet, disqualified: dict[str, str] | None = None, *, every_run: bool = False
) -> Leaderboard:
    """Rank the runs of each league.

    `disqualified` maps the beginning of a run id or of a submission's digest to a reason. With
    `every_run`, every run of a name has a place, not only the best one.
    """
    matches = {
        word: {found for run in reports.runs for found in _matching(word, run)}
        for word in disqualified or {}
    }
    for word, found in matches.items():
        if len(found) > 1:
            raise DisqualificationError(
                f"{word!r} matches {' and '.join(sorted(found))}; give more digits"
            )
    reasons = {
        next(iter(found)): (disqualified or {})[word] for word, found in matches.items() if found
    }
    boards = tuple(
        _board(league, runs, reasons, every_run=every_run)
        for league, runs in leagues_of(reports.comparable).items()
    )
    unused = tuple(sorted(word for word, found in matches.items() if not found))
    return Leaderboard(boards, reports.not_comparable, reports.unread, unused)


def _matching(word: str, run: Entry) -> Iterator[str]:
    yield from (known for known in (run.submission, run.run_id) if known.startswith(word))


def _board(
    league: League, runs: Sequence[Entry], reasons: dict[str, str], *, every_run: bool
) -> Board:
    out = [
        Disqualified(run, reason)
        for run in runs
        for reason in [reasons.get(run.run_id) or reasons.get(run.submission)]
        if reason
    ]
    gone = {entry.run.run_id for entry in out}
    left = [run for run in runs if run.run_id not in gone]
    out.sort(key=lambda entry: _place(entry.run))
    return Board(league, tuple(_standings(left, every_run=every_run)), tuple(out))


def _place(run: Entry) -> tuple[Any, ...]:
    """Return the position of a run in the list; runs with equal merit are sorted by name."""
    return (*merit(run), run.name, run.run_id)


def _standings(runs: Iterable[Entry], *, every_run: bool) -> Iterator[Standing]:
    ordered = sorted(runs, key=_place)
    tries: dict[str, list[Entry]] = {}
    for run in ordered:
        tries.setdefault(run.name, []).append(run)
    shown = ordered if every_run else [each[0] for each in tries.values()]
    same_bytes: dict[str, set[str]] = {}
    for run in shown:
        same_bytes.setdefault(run.submission, set()).add(run.name)
    rank = 0
    for number, run in enumerate(shown, 1):
        if number == 1 or merit(run) != merit(shown[number - 2]):
            rank = number
        twins = same_bytes[run.submission] - {run.name}
        yield Standing(rank, run, len(tries[run.name]), tuple(sorted(twins)))


_WORD: Final = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},64}}")


def read_disqualified(path: Path) -> dict[str, str]:
    """Read a TOML file of run ids or digests of submissions, each with a reason."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise DisqualificationError(f"{path} is too large to be a list of disqualifications")
        found = tomllib.loads(data.decode())
    except OSError as error:
        raise DisqualificationError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DisqualificationError(f"{path} is not TOML: {error}") from None
    for word, reason in found.items():
        if not _WORD.fullmatch(word):
            raise DisqualificationError(
                f"{path}: {word!r} is neither a run id nor a submission's digest; give "
                f"{LEAST_DIGITS} or more hexadecimal digits"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise DisqualificationError(
                f'{path}: {word} has no reason; write {word} = "the reason"'
            )
    return found
