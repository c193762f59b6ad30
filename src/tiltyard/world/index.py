"""Full-text search: a small inverted index with integer scores.

Scores are whole numbers and ties fall to the earlier page, so a ranking is the same on every
machine. Postings are flat rows of bytes: 20,000 pages fit in a few megabytes and are read back
from a cache without being rebuilt.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from struct import pack, unpack
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.world.text import lower

INDEX_FORMAT: Final = "2"
"""Names how an index is made and stored."""

# Python's tables of letters and cases change with its version, and rankings must not. So letters
# are told by their block, and only ASCII is folded.
_WORD: Final = re.compile(
    "[0-9a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2070-\u2fff\u3040-\ud7ff\ue000-\U0010ffff]+"
)
_TITLE_WEIGHT: Final = 4
_MAX_IMPACT: Final = 15
_FINGERPRINT_BYTES: Final = 8


class Index(Struct, frozen=True):
    """Which documents hold a word, and what it counts for in each.

    A posting is a row of little-endian 32-bit numbers. It goes by falling impact: for each one
    `count << 4 | impact`, then the positions of so many documents, in order. Grouped so, a search
    adds one number to many scores, which is what makes common words cheap.
    """

    size: int
    titles: bytes
    """For each document a fingerprint of its title's words, so that an exact title is known."""
    postings: dict[str, bytes]

    @classmethod
    def build(cls, documents: Iterable[tuple[str, str]]) -> "Index":
        """Index (title, body) pairs; a word in a title counts four times."""
        occurrences: defaultdict[str, list[int]] = defaultdict(list)
        titles: list[bytes] = []
        lengths: list[int] = []
        for position, (title, body) in enumerate(documents):
            title_words = words(title)
            all_words = words(body) + title_words * _TITLE_WEIGHT
            for word in all_words:
                occurrences[word].append(position)
            titles.append(_fingerprint(title_words))
            lengths.append(len(all_words))
        dampings = _dampings(lengths)
        postings = {word: _posting(held, dampings) for word, held in occurrences.items()}
        return cls(len(titles), b"".join(titles), postings)

    @classmethod
    def from_bytes(cls, data: bytes, seal: bytes) -> "Index | None":
        """Return the index that `to_bytes` stored under the same seal; None for anything else."""
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
            if stored.form != INDEX_FORMAT or stored.checksum != _checksum(stored.payload, seal):
                return None
            index = msgspec.msgpack.decode(stored.payload, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return index if len(index.titles) == index.size * _FINGERPRINT_BYTES else None

    def to_bytes(self, seal: bytes) -> bytes:
        """Store the index; `seal` is up to 64 bytes that say what it is an index of."""
        payload = msgspec.msgpack.encode(self)
        return msgspec.msgpack.encode(_Stored(INDEX_FORMAT, _checksum(payload, seal), payload))

    def search(self, query: str, limit: int) -> list[int]:
        """Return positions of the best documents, best first.

        A document scores for each different word of the query that it holds: the word's rarity
        times its impact there. A document whose title is the query comes before all others.
        """
        asked = words(query)
        if not asked:
            return []
        scores = [0] * self.size
        most = 0
        for word in dict.fromkeys(asked):
            if word in self.postings:
                most += self._add_word(self.postings[word], scores)
        for position in self._titled(asked):
            scores[position] += most
        return _best(scores, limit)

    def _add_word(self, posting: bytes, scores: list[int]) -> int:
        """Add what a word is worth to each of its documents; return the most it can be worth."""
        groups = list(_groups(posting))
        holders = sum(len(positions) for _, positions in groups)
        # The number of bits stands in for the logarithm: all of it is integer arithmetic.
        rarity = (self.size // holders).bit_length()
        for impact, positions in groups:
            score = rarity * impact
            for position in positions:
                scores[position] += score
        return rarity * _MAX_IMPACT

    def _titled(self, title_words: list[str]) -> Iterator[int]:
        fingerprint = _fingerprint(title_words)
        at = self.titles.find(fingerprint)
        while at >= 0:
            position, between = divmod(at, _FINGERPRINT_BYTES)
            if not between:
                yield position
            at = self.titles.find(fingerprint, at + 1)


class _Stored(Struct, array_like=True):
    form: str
    checksum: bytes
    payload: bytes


def _checksum(payload: bytes, seal: bytes) -> bytes:
    return blake2b(payload, key=seal, digest_size=32).digest()


def words(text: str) -> list[str]:
    return _WORD.findall(lower(text))


def _fingerprint(title_words: list[str]) -> bytes:
    return blake2b(" ".join(title_words).encode(), digest_size=_FINGERPRINT_BYTES).digest()


def _dampings(lengths: list[int]) -> list[int]:
    """Return how much each document's length takes from the impact of its words."""
    total = sum(lengths) or 1
    return [3 + 9 * length * len(lengths) // total for length in lengths]


def _posting(held: list[int], dampings: list[int]) -> bytes:
    """Pack a word's occurrences, each a position, in order.

    The impact is the term of BM25 (k1 = 1.2, b = 3/4) in whole numbers from 1 to 15: occurrences
    count less and less, and less in a long document than in a short one.
    """
    by_impact: defaultdict[int, list[int]] = defaultdict(list)
    for position, count in Counter(held).items():
        impact = 1 + 150 * count // (10 * count + dampings[position])
        by_impact[impact].append(position)
    row: list[int] = []
    for impact in sorted(by_impact, reverse=True):
        group = by_impact[impact]
        row += (len(group) << 4 | impact, *group)
    return pack(f"<{len(row)}I", *row)


def _groups(posting: bytes) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield each impact of a posting with the positions that have it."""
    row = unpack(f"<{len(posting) // 4}I", posting)
    at = 0
    while at < len(row):
        count, impact = row[at] >> 4, row[at] & _MAX_IMPACT
        yield impact, row[at + 1 : at + 1 + count]
        at += 1 + count


def _best(scores: list[int], limit: int) -> list[int]:
    """Return the positions of the highest scores above zero, ties in order of position.

    Many documents share few scores, so finding each score in turn beats any heap.
    """
    best: list[int] = []
    for score in sorted(set(scores), reverse=True):
        at = -1
        while score and len(best) < limit:
            try:
                at = scores.index(score, at + 1)
            except ValueError:
                break
            best.append(at)
        if len(best) >= limit:
            break
    return best
