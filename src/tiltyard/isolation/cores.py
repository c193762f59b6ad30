"""Judge and guest on one core.

They never work at the same time: one asks, the other answers. On two cores each question would
wait for a sleeping core to wake up, which takes several times as long as the answer. Only speed
depends on this, so where it cannot be had, nothing happens.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PROCESSOR_FIELD = 36
"""Of /proc/self/stat, counted behind the program's name."""


class SharedCore:
    """The core that this process and its guests stay on, until it is given up."""

    def __init__(self) -> None:
        self._before: set[int] | None = None
        self._core: int | None = None

    def join(self, pid: int) -> None:
        """Bring a process and all that it started to the core of this one."""
        with suppress(OSError, ValueError, IndexError, AttributeError):
            if self._core is None:
                self._before, self._core = os.sched_getaffinity(0), _core_at_work()
                os.sched_setaffinity(0, {self._core})
            for each in _family(pid):
                os.sched_setaffinity(each, {self._core})

    def of_a_copy(self) -> "SharedCore":
        """Return one for a copy of this process made by fork, which must not stay on our core."""
        self.give_up()
        return SharedCore()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let what is started meanwhile run anywhere: it is not spoken with yet."""
        core, before = self._core, self._before
        if core is None or before is None:
            yield
            return
        with suppress(OSError):
            os.sched_setaffinity(0, before)
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, {core})

    def give_up(self) -> None:
        """Let this process run wherever it could before."""
        if self._before is not None:
            with suppress(OSError):
                os.sched_setaffinity(0, self._before)
        self._before = self._core = None


def _core_at_work() -> int:
    stat = Path("/proc/self/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[_PROCESSOR_FIELD])


def _family(pid: int) -> Iterator[int]:
    yield pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    for child in children.split():
        yield from _family(int(child))
