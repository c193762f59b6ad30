"""The budget of work for one candidate.

The judge counts work and never reads a clock, so a verdict is the same on every machine. One unit
is what the shell counts as one unit against the limit of a command line.
"""

from typing import Final

from tiltyard.contracts.trace import Trace

MAX_WORK: Final = 40_000_000
"""Limit for everything that the judge does for one candidate."""
WORK_PER_CALL: Final = 2_000
WORK_PER_CHAR: Final = 20
"""A character of a result: the agent reads all of them for instructions."""


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
        self.done += work
        if self.spent:
            raise OutOfWorkError

    def add_turn(self, trace: Trace) -> None:
        """Add the work of the last turn of a trace."""
        work = 0
        for event in trace.turn_events:
            read = WORK_PER_CHAR * len(event.result.output.string)
            work += WORK_PER_CALL + read + event.result.work
        self.add(work)
