"""Judge and guest on one core.

They never work at the same time: one asks, the other answers. On two cores each question would
wait for a sleeping core to wake up, which takes several times as long as the answer. Only speed
depends on this, so where it cannot be had, nothing happens.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiltyard.isolation.host.slots import Slot, take

_PROCESSOR_FIELD = 36
"""Of /proc/self/stat, counted behind the program's name."""


class SharedCore:
    """A wish to keep this process and some guests on one core, until it is given up.

    Where both sides of a match are guests, two such wishes hold at once and end in any order; the
    process is let go with the last of them.
    """

    def join(self, pid: int) -> None:
        """Bring a process to the core of this one."""
        with suppress(OSError, ValueError, IndexError, AttributeError):
            _here().hold(self)
            os.sched_setaffinity(pid, {_here().core})

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let what is started meanwhile run anywhere: it is not spoken with yet."""
        held = _here()
        if not held.holders:
            yield
            return
        with suppress(OSError):
            os.sched_setaffinity(0, held.before)
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, {held.core})

    def give_up(self) -> None:
        """Let this process run wherever it could before, unless somebody else holds it."""
        _here().release(self)


class _Held:
    """The core of this process.

    Each process takes one that no other has, as long as there are any: two search workers on one
    core would take turns.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.holders: set[SharedCore] = set()
        self.before: set[int] = set()
        self.core = 0
        self._claim: Slot | None = None

    def hold(self, holder: SharedCore) -> None:
        if not self.holders:
            self.before, here = os.sched_getaffinity(0), _core_at_work()
            self._claim = take("core", [here, *sorted(self.before - {here})])
            self.core = here if self._claim is None else self._claim.number
            os.sched_setaffinity(0, {self.core})
        self.holders.add(holder)

    def release(self, *holders: SharedCore) -> None:
        if not self.holders:
            return
        self.holders -= {*holders}
        if not self.holders:
            with suppress(OSError):
                os.sched_setaffinity(0, self.before)
            if self._claim is not None:
                self._claim.release()
            self._claim = None


_held = _Held()


def _here() -> _Held:
    """Return what holds this process; a copy made by fork leaves the core to the original."""
    global _held  # noqa: PLW0603 - a process has one affinity, whoever sets it
    if _held.process != os.getpid():
        _held.release(*_held.holders)
        _held = _Held()
    return _held


def _core_at_work() -> int:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[_PROCESSOR_FIELD])
