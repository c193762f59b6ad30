"""The leaderboard: who is ahead, among those who can be compared.

A league is one ruleset, one key and one version of the engine; leagues are never mixed. A name has
one place, that of its best run. The order is by final score; then by raw offense score, which goes
on where the offense score is capped; then by fewer breaches; then by fewer false positives. Whoever
is still level has the same rank, and the next rank is left out.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.standings.report_set import ROUNDING, Field, League, Run, Unread, leagues_of

LEAST_DIGITS: Final = 8
MAX_FILE_BYTES: Final = 1_000_000


class DisqualificationError(ValueError):
    """A file of disqualifications that cannot be used."""


class Standing(Struct, frozen=True):
    rank: int
    run: Run
    runs: int = 1
    """How many comparable runs of this name there are; this is the best of them."""
    same_bytes_as: tuple[str, ...] = ()
    """Other names under which the same submission stands."""


class Disqualified(Struct, frozen=True):
    run: Run
    reason: str


class Board(Struct, frozen=True):
    league: League
    standings: tuple[Standing, ...]
    disqualified: tuple[Disqualified, ...] = ()


class Leaderboard(Struct, frozen=True):
    boards: tuple[Board, ...]
    """One for each league."""
    apart: tuple[Run, ...] = ()
    """Not comparable, each with its reasons."""
    unread: tuple[Unread, ...] = ()
    unused: tuple[str, ...] = ()
    """Disqualifications that fit nothing here: a slip of the pen, perhaps."""


def merit(run: Run) -> tuple[float, ...]:
    """Return what a run is ranked by; less is better. A track that was not played has nothing."""
    return (
        -round(run.final_score or 0.0, ROUNDING),
        -round(run.raw or 0.0, ROUNDING),
        inf if run.breaches is None else round(run.breaches, ROUNDING),
        inf if run.false_positives is None else round(run.false_positives, ROUNDING),
    )


def make_leaderboard(
    field: Field, disqualified: dict[str, str] | None = None, *, every_run: bool = False
) -> Leaderboard:
    """Rank the runs of each league; with every run, a name stands as often as it was run."""
    fits = {
        word: {found for run in field.runs for found in _fitting(word, run)}
        for word in disqualified or {}
    }
    for word, found in fits.items():
        if len(found) > 1:
            raise DisqualificationError(
                f"{word!r} fits {' and '.join(sorted(found))}; give more digits"
            )
    reasons = {
        next(iter(found)): (disqualified or {})[word] for word, found in fits.items() if found
    }
    boards = tuple(
        _board(league, runs, reasons, every_run=every_run)
        for league, runs in leagues_of(field.comparable).items()
    )
    unused = tuple(sorted(word for word, found in fits.items() if not found))
    return Leaderboard(boards, field.apart, field.unread, unused)


def _fitting(word: str, run: Run) -> Iterator[str]:
    yield from (known for known in (run.submission, run.run_id) if known.startswith(word))


def _board(
    league: League, runs: Sequence[Run], reasons: dict[str, str], *, every_run: bool
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


def _place(run: Run) -> tuple[Any, ...]:
    """Return where a run is listed: level ones by name, since they must stand in some order."""
    return (*merit(run), run.name, run.run_id)


def _standings(runs: Iterable[Run], *, every_run: bool) -> Iterator[Standing]:
    ordered = sorted(runs, key=_place)
    tries: dict[str, list[Run]] = {}
    for run in ordered:
        tries.setdefault(run.name, []).append(run)
    shown = ordered if every_run else [each[0] for each in tries.values()]
    rank = 0
    for number, run in enumerate(shown, 1):
        if number == 1 or merit(run) != merit(shown[number - 2]):
            rank = number
        twins = {other.name for other in shown if other.submission == run.submission}
        yield Standing(rank, run, len(tries[run.name]), tuple(sorted(twins - {run.name})))


_WORD: Final = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},64}}")


def read_disqualified(path: Path) -> dict[str, str]:
    """Read who is disqualified: run ids and digests of submissions, each with a reason."""
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
                f"{path}: {word!r} is neither a run id nor the digest of a submission; give "
                f"{LEAST_DIGITS} or more of its hexadecimal digits"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise DisqualificationError(
                f'{path}: {word} has no reason; write {word} = "why, in a sentence"'
            )
    return found
