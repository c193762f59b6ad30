"""The archive: the best chain known for each cell, and which cell to go back to next.

A chain of messages is the truth about a cell; the state that it leads to is a cache, kept
elsewhere, so that forgetting states changes no result.
"""

from collections.abc import Iterator
from math import isqrt
from typing import Final

from msgspec import Struct

from tiltyard.foundation.draw import Draw
from tiltyard.search.fenwick import Fenwick

CELL_CAPACITY: Final = 20_000
_UNIT: Final = 1 << 32

Chain = tuple[str, ...]


class Entry(Struct, gc=False):
    """A cell, and the best way there that is known."""

    cell: int
    chain: Chain
    score: int
    steps: int
    seen: int = 1
    decisions: int = 0
    """What the guardrail decided on the way, as a checksum."""


class Archive:
    """Cells in the order of their discovery, up to a fixed number of them.

    A full archive takes no further cells; it still takes better ways to those it has.
    """

    def __init__(self, capacity: int = CELL_CAPACITY) -> None:
        self.capacity = capacity
        self._entries: list[Entry] = []
        self._places: dict[int, int] = {}
        self._weights = Fenwick()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def visit(self, cell: int) -> None:
        """Count one more visit: what is seen often is chosen less."""
        place = self._places.get(cell)
        if place is not None:
            entry = self._entries[place]
            entry.seen += 1
            self._weights.change(place, weight_of(entry.seen))

    def offer(self, cell: int, chain: Chain, score: int, steps: int, decisions: int = 0) -> bool:
        """Keep a chain if it is the first to its cell, or better than the one that is there."""
        place = self._places.get(cell)
        if place is None:
            if len(self._entries) >= self.capacity:
                return False
            self._places[cell] = len(self._entries)
            self._entries.append(Entry(cell, chain, score, steps, 1, decisions))
            self._weights.append(weight_of(1))
            return True
        entry = self._entries[place]
        if not is_better(score, steps, chain, entry):
            return False
        entry.chain, entry.score, entry.steps = chain, score, steps
        entry.decisions = decisions
        return True

    def choose(self, draw: Draw) -> Entry:
        """Return a cell to go back to, drawn in proportion to its weight."""
        return self._entries[self._weights.find(draw.below(self._weights.total))]


def weight_of(seen: int) -> int:
    """Return 1 / sqrt(seen + 1) as a whole number: 65,536 stands for 1."""
    return isqrt(_UNIT // (seen + 1))


def is_better(score: int, steps: int, chain: Chain, than: Entry) -> bool:
    """Tell whether a chain takes the place of another: a higher score, or the same for less.

    The order is total, so that it does not matter which of two was found first.
    """
    mine = (-score, steps, len(chain), chain)
    return mine < (-than.score, than.steps, len(than.chain), than.chain)
