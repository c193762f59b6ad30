"""Puts judge and guest on one core.

They never work at the same time: one asks, the other answers. On two cores, each request would
wait until a sleeping core wakes up, which takes several times as long as the answer. Only speed
depends on this, so errors are ignored.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiltyard.isolation.host.slots import Slot, take

_PROCESSOR_FIELD = 36
"""The index of the processor in /proc/self/stat, after the program's name."""


class SharedCore:
    """Keeps this process and some guests on one core until `give_up`.

    If both sides of a match are guests, two of these are active at once and end in any order. The
    last one to end frees the process.
    """

    def join(self, pid: int) -> None:
        """Move the process `pid` to the core of this process."""
        with suppress(OSError, ValueError, IndexError, AttributeError):
            _own_core().hold(self)
            os.sched_setaffinity(pid, {_own_core().core})

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let processes that start in this `with` block run on any core."""
        held = _own_core()
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
        """Let this process run on its former cores, unless another `SharedCore` is active."""
        _own_core().release(self)


class _OwnCore:
    """The core of this process.

    Each process takes a core of its own, as long as there are free ones: two search workers on one
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
            self.before, here = os.sched_getaffinity(0), _current_core()
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


_held = _OwnCore()


def _own_core() -> _OwnCore:
    """Return the state of this process. A forked copy leaves the core to the original."""
    global _held  # noqa: PLW0603 - a process has one affinity
    if _held.process != os.getpid():
        _held.release(*_held.holders)
        _held = _OwnCore()
    return _held


def _current_core() -> int:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[_PROCESSOR_FIELD])
