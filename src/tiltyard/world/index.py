"""Full-text search: a small inverted index with integer scores.

Scores are integers and the earlier page wins a tie, so a ranking is the same on every machine.
Postings are flat rows of bytes: an index of 20,000 pages takes a few megabytes, and loading it from
a cache needs no rebuilding.
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
"""Version of how an index is built and stored."""

# Unicode tables change with the version of Python, but rankings must not. So this pattern
# recognizes letters by their block, and only ASCII is lower-cased.
_WORD: Final = re.compile(
    "[0-9a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2070-\u2fff\u3040-\ud7ff\ue000-\U0010ffff]+"
)
_TITLE_WEIGHT: Final = 4
_MAX_IMPACT: Final = 15
_FINGERPRINT_BYTES: Final = 8


class Index(Struct, frozen=True):
    """Maps each word to the documents that contain it, with the impact of the word in each.

    A posting is a row of little-endian 32-bit numbers. For each impact, from high to low, it holds
    `count << 4 | impact` and then the positions of `count` documents. With this grouping a search
    adds one number to many scores, so common words are cheap.
    """

    size: int
    titles: bytes
    """A fingerprint of the title of each document, to recognize a query for an exact title."""
    postings: dict[str, bytes]

    @classmethod
    def build(cls, documents: Iterable[tuple[str, str]]) -> "Index":
        """Index (title, body) pairs. A word in a title counts four times."""
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
        """Return the index that `to_bytes` stored with the same `seal`; None for other data."""
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
            if stored.form != INDEX_FORMAT or stored.checksum != _checksum(stored.payload, seal):
                return None
            index = msgspec.msgpack.decode(stored.payload, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return index if len(index.titles) == index.size * _FINGERPRINT_BYTES else None

    def to_bytes(self, seal: bytes) -> bytes:
        """Encode the index. `seal`, up to 64 bytes, identifies the indexed documents."""
        payload = msgspec.msgpack.encode(self)
        return msgspec.msgpack.encode(_Stored(INDEX_FORMAT, _checksum(payload, seal), payload))

    def search(self, query: str, limit: int) -> list[int]:
        """Return positions of the best documents, best first.

        Each distinct word of the query adds its rarity times its impact to the score of a document.
        A document whose title equals the query comes before all others.
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
        """Add the value of a word to the score of its documents; return its highest value."""
        groups = list(_groups(posting))
        holders = sum(len(positions) for _, positions in groups)
        # The number of bits replaces the logarithm, to use integer arithmetic only.
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
    """Return how much the length of each document reduces the impact of its words."""
    total = sum(lengths) or 1
    return [3 + 9 * length * len(lengths) // total for length in lengths]


def _posting(held: list[int], dampings: list[int]) -> bytes:
    """Pack the occurrences of a word: `held` has the position of its document for each, sorted.

    The impact is the BM25 term (k1 = 1.2, b = 3/4) as an integer from 1 to 15. Each further
    occurrence adds less, and an occurrence in a long document adds less than in a short one.
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
    """Yield each impact of a posting with the positions of its documents."""
    row = unpack(f"<{len(posting) // 4}I", posting)
    at = 0
    while at < len(row):
        count, impact = row[at] >> 4, row[at] & _MAX_IMPACT
        yield impact, row[at + 1 : at + 1 + count]
        at += 1 + count


def _best(scores: list[int], limit: int) -> list[int]:
    """Return the positions of the highest scores above zero; the earlier position wins a tie.

    Many documents share few scores, so a search for each score in turn is faster than a heap.
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
