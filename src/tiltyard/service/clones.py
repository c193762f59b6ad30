"""Find submissions of different teams with similar code.

A submission's code is reduced to its tokens: names of variables, comments and white space do not
count. A sketch keeps the smallest hashes of all runs of eight tokens, so that two sketches tell
which share of the runs both have. A mark is a hint for an organizer, and changes no score.
"""

import io
import keyword
import tokenize
import zipfile
from collections.abc import Iterator
from itertools import combinations
from typing import Final
from zlib import crc32

from msgspec import Struct

from tiltyard.service.models import Competition, Sketch, Submission, Upload
from tiltyard.service.visible import Viewer

_RUN: Final = 8
_KEPT: Final = 128
_MAX_BYTES: Final = 256 << 10
_LIKE: Final = 0.7
_FEWEST: Final = 20
"""Shorter code is similar by chance."""
AT_ONCE: Final = 300
_SKIPPED: Final = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)


class Mark(Struct, frozen=True):
    """Two submissions of two teams with similar code."""

    first: str
    second: str
    submissions: tuple[str, str]
    likeness: float
    """The share of code that both have; 1.0 for the same bytes."""
    same_bytes: bool


def sketch_of(content: bytes) -> tuple[int, ...]:
    """Return the sketch of a packed submission. Nothing of it is parsed or run."""
    hashes: set[int] = set()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                words = list(_words(archive.read(name)[:_MAX_BYTES]))
                runs = range(len(words) - _RUN + 1)
                hashes |= {crc32("\0".join(words[at : at + _RUN]).encode()) for at in runs}
    return tuple(sorted(hashes)[:_KEPT])


def _words(source: bytes) -> Iterator[str]:
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type not in _SKIPPED:
                is_name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
                yield "name" if is_name else token.string
    except (tokenize.TokenError, SyntaxError, UnicodeError, RecursionError):
        return  # What was read until here counts.


def likeness(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Return the estimated share of code that two submissions have in common."""
    if min(len(one), len(other)) < _FEWEST:
        return 0.0
    smallest = sorted({*one, *other})[:_KEPT]
    both = {*one} & {*other}
    return sum(value in both for value in smallest) / len(smallest)


def fill_sketches(competition: Competition) -> int:
    """Sketch submissions that have no sketch, some at a time. Return how many are left."""
    left = Submission.objects.filter(competition=competition, sketch=None, cancelled_at=None)
    for submission in left.order_by("pk")[:AT_ONCE]:
        content = bytes(Upload.objects.get(pk=submission.pk).content)
        Sketch.objects.get_or_create(
            submission=submission, defaults={"values": [*sketch_of(content)]}
        )
    return left.count()


def clone_marks(competition: Competition, viewer: Viewer) -> tuple[Mark, ...]:
    """Return pairs of teams with similar code, the most similar first; organizers only."""
    if not viewer.organizes:
        return ()
    rows = Sketch.objects.filter(
        submission__competition=competition, submission__cancelled_at=None
    ).select_related("submission__team")
    found: dict[tuple[int, int], Mark] = {}
    for one, other in _candidates(list(rows)):
        pair = tuple(sorted((one.submission.team_id, other.submission.team_id)))
        same = one.submission.digest == other.submission.digest
        share = 1.0 if same else likeness(tuple(one.values), tuple(other.values))
        known = found.get(pair)  # type: ignore[arg-type]
        if share >= _LIKE and (known is None or known.likeness < share):
            found[pair] = Mark(  # type: ignore[index]
                one.submission.team.name,
                other.submission.team.name,
                (str(one.submission_id), str(other.submission_id)),
                share,
                same,
            )
    return tuple(sorted(found.values(), key=lambda mark: (-mark.likeness, mark.first, mark.second)))


def _candidates(sketches: list[Sketch]) -> Iterator[tuple[Sketch, Sketch]]:
    """Yield the pairs of different teams that share one of their smallest hashes or all bytes."""
    groups: dict[object, list[Sketch]] = {}
    for one in sketches:
        for value in (one.submission.digest, *one.values[:8]):
            groups.setdefault(value, []).append(one)
    seen: set[tuple[object, object]] = set()
    for group in groups.values():
        for one, other in combinations(group[:200], 2):
            pair = (one.pk, other.pk)
            if one.submission.team_id != other.submission.team_id and pair not in seen:
                seen.add(pair)
                yield one, other
