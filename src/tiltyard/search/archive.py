"""The archive: the best known chain for each cell, and the choice of the next cell.

The archive keeps chains, not states. The player caches states, so dropping a state changes no
result.
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
    """A cell and the best known chain to it."""

    cell: int
    chain: Chain
    score: int
    steps: int
    seen: int = 1
    decisions: str = ""
    """The guardrail's decisions along the chain, as in `Footprint`."""


class Archive:
    """Cells in the order of their discovery, up to `capacity`.

    A full archive accepts no new cells, but still accepts better chains to the cells it has.
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
        """Count one more visit: a cell that is visited often is chosen less often."""
        place = self._places.get(cell)
        if place is not None:
            entry = self._entries[place]
            entry.seen += 1
            self._weights.change(place, weight_of(entry.seen))

    def offer(self, cell: int, chain: Chain, score: int, steps: int, decisions: str = "") -> bool:
        """Keep a chain if its cell is new, or if it is better than the known chain."""
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
        """Return a cell to go back to, drawn with probability proportional to its weight."""
        return self._entries[self._weights.find(draw.below(self._weights.total))]


def weight_of(seen: int) -> int:
    """Return 1 / sqrt(seen + 1) as a whole number; 65,536 stands for 1."""
    return isqrt(_UNIT // (seen + 1))


def is_better(score: int, steps: int, chain: Chain, than: Entry) -> bool:
    """Tell whether a chain replaces an entry's: a higher score, or the same score with fewer steps.

    The order is total, so it does not matter which of two chains was found first.
    """
    mine = (-score, steps, len(chain), chain)
    return mine < (-than.score, than.steps, len(than.chain), than.chain)
