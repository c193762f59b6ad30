"""A guest's time and chance: both are functions of what happens in the match.

Time advances with the steps that an attack spends, or with the events of an episode, by what is
slept, and by a tick for each reading. Randomness is drawn from the match key. So a guest that asks
the clock or rolls dice does the same each time; a guest that means harm gains nothing by it.
"""

import datetime as dt
import importlib
import os
import random
import time
import uuid
from typing import Any, Final

from tiltyard.draw import Draw

EPOCH_SECONDS: Final = 1_767_600_000
"""2026-01-05, the simulated machine's day."""
TICK_NANOSECONDS: Final = 1_000
OFFICIAL_SECONDS: Final = 1_200
EVENT_NANOSECONDS: Final = 1_000_000_000


class Clock:
    """Nanoseconds since the beginning, moved by the match and by those who read it."""

    def __init__(self) -> None:
        self._base = 0
        self._extra = 0
        self.step_nanoseconds = 20_000_000

    def at_step(self, steps: int) -> None:
        self._base = max(self._base, steps * self.step_nanoseconds)

    def at_event(self, index: int) -> None:
        """Go to an event's moment, forwards or back: a state may be returned to."""
        self._base = index * EVENT_NANOSECONDS
        self._extra = 0

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._extra += int(seconds * 1_000_000_000)

    def read(self) -> int:
        self._extra += TICK_NANOSECONDS
        return self._base + self._extra


def install(key: str) -> Clock:
    """Put the virtual clock and the keyed dice in the place of the real ones."""
    clock = Clock()
    draw = Draw("guest", key)
    start = EPOCH_SECONDS * 1_000_000_000

    def ns() -> int:
        return clock.read()

    def seconds() -> float:
        return clock.read() / 1e9

    names: dict[str, Any] = {
        "time": lambda: (start + clock.read()) / 1e9,
        "time_ns": lambda: start + clock.read(),
        "sleep": clock.sleep,
    }
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        names[name] = seconds
        names[f"{name}_ns"] = ns
    for name, function in names.items():
        setattr(time, name, function)
    time.clock_gettime = lambda _clock: seconds()
    time.clock_gettime_ns = lambda _clock: ns()
    _install_dates(clock)
    _install_dice(draw)
    return clock


def _install_dates(clock: Clock) -> None:
    class Now(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "Now":
            moment = EPOCH_SECONDS + clock.read() / 1e9
            return cls.fromtimestamp(moment, tz or dt.UTC).replace(tzinfo=tz)

        @classmethod
        def utcnow(cls) -> "Now":
            return cls.now()

        @classmethod
        def today(cls) -> "Now":
            return cls.now()

    class Today(dt.date):
        @classmethod
        def today(cls) -> "Today":
            return cls.fromordinal(Now.now().toordinal())

    dt.datetime = Now  # type: ignore[misc]
    dt.date = Today  # type: ignore[misc]


def _install_dice(draw: Draw) -> None:
    os.urandom = draw.bytes
    random._urandom = draw.bytes  # type: ignore[attr-defined]  # noqa: SLF001
    seed = draw.integer()
    random.seed(seed)
    uuid.uuid1 = _uuid
    try:
        numpy: Any = importlib.import_module("numpy")
    except ImportError:
        return  # not among the packages of this competition
    numpy.random.seed(seed % 2**32)
    real = numpy.random.default_rng
    numpy.random.default_rng = lambda given=None: real(seed if given is None else given)


def _uuid(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    del node, clock_seq
    return uuid.uuid4()
