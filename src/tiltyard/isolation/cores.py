"""Judge and guest on one core.

They never work at the same time: one asks, the other answers. On two cores each question would
wait for a sleeping core to wake up, which takes several times as long as the answer. Only speed
depends on this, so where it cannot be had, nothing happens.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiltyard.isolation.slots import Slot, take

_PROCESSOR_FIELD = 36
"""Of /proc/self/stat, counted behind the program's name."""


class SharedCore:
    """The core that this process and its guests stay on, until it is given up.

    Each process takes one that no other has, as long as there are any: two search workers on one
    core would take turns.
    """

    def __init__(self) -> None:
        self._before: set[int] = set()
        self._core: int | None = None
        self._claim: Slot | None = None

    def join(self, pid: int) -> None:
        """Bring a process to the core of this one."""
        with suppress(OSError, ValueError, IndexError, AttributeError):
            if self._core is None:
                self._before, here = os.sched_getaffinity(0), _core_at_work()
                self._claim = take("core", [here, *sorted(self._before - {here})])
                self._core = here if self._claim is None else self._claim.number
                os.sched_setaffinity(0, {self._core})
            os.sched_setaffinity(pid, {self._core})

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let what is started meanwhile run anywhere: it is not spoken with yet."""
        core = self._core
        if core is None:
            yield
            return
        with suppress(OSError):
            os.sched_setaffinity(0, self._before)
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, {core})

    def give_up(self) -> None:
        """Let this process run wherever it could before."""
        if self._core is not None:
            with suppress(OSError):
                os.sched_setaffinity(0, self._before)
        if self._claim is not None:
            self._claim.release()
        self._core = self._claim = None


def _core_at_work() -> int:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[_PROCESSOR_FIELD])
