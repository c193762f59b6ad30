"""The budget of work for one candidate.

The judge counts work and never reads a clock, so a verdict is the same on every machine. One unit
is what the shell counts as one unit against the limit of a command line.
"""

from collections.abc import Iterable
from typing import Final

from tiltyard.contracts.trace import Trace
from tiltyard.world.text import Derived, Text

MAX_WORK: Final = 40_000_000
"""Limit for everything that the judge does for one candidate."""
WORK_PER_CALL: Final = 2_000
WORK_PER_CHAR: Final = 20
"""A character of a result: the agent reads all of them for instructions."""
WORK_PER_LABEL: Final = 4
"""A label of a text: a piece, or a piece of the source of an encoded piece."""


class OutOfWorkError(Exception):
    """The budget is spent."""


class Work:
    """Adds up the work for one candidate."""

    def __init__(self) -> None:
        self.done = 0

    @property
    def spent(self) -> bool:
        return self.done >= MAX_WORK

    def add(self, work: int) -> None:
        """Add work that is done or about to be done. Raise `OutOfWorkError` when it is too much."""
        self.note(work)
        if self.spent:
            raise OutOfWorkError

    def note(self, work: int) -> None:
        """Add work where nothing may raise. The caller looks at `spent`."""
        self.done += work

    def add_turn(self, trace: Trace) -> None:
        """Add the work of the last turn of a trace."""
        work = 0
        for event in trace.turn_events:
            read = WORK_PER_CHAR * len(event.result.output.string)
            work += WORK_PER_CALL + read + event.result.work
        self.add(work)

    def add_labels(self, texts: Iterable[Text]) -> None:
        """Add the work to read all labels of some texts."""
        self.add(work_for_labels(texts))


def work_for_labels(texts: Iterable[Text]) -> int:
    """Return the work to read all labels of some texts."""
    return WORK_PER_LABEL * sum(map(_count_labels, texts))


def _count_labels(text: Text) -> int:
    """Return how many pieces a text has, with the pieces of all sources of encoded pieces."""
    origins = [piece.origin for piece in text.pieces]
    return len(origins) + sum([each.size for each in origins if isinstance(each, Derived)])
