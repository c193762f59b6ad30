"""A guest's clock and randomness: both depend on the match alone.

Time advances with the steps that an attack spends or the events of an episode, with `sleep`, and by
one tick for each reading. Ticks grow while a guest does nothing but read the clock, so that a loop
until a deadline ends soon. Random numbers are drawn from the match key. So a guest that uses them
behaves the same in every run. This is no protection: the jail is.
"""

import datetime as dt
import importlib
import os
import random
import sys
import time
import uuid
from functools import cache
from types import ModuleType
from typing import Any, Final, Self

from tiltyard.foundation.draw import Draw

EPOCH_SECONDS: Final = 1_767_600_000
"""2026-01-05, the date in the simulated world."""
TICK_NANOSECONDS: Final = 1_000
READINGS_BEFORE_DOUBLING: Final = 1 << 14
"""A tick doubles after each such number of readings between two steps or events."""
MAX_DOUBLINGS: Final = 20
"""The longest tick is about a second."""
OFFICIAL_SECONDS: Final = 1_200
EVENT_NANOSECONDS: Final = 1_000_000_000


class Clock:
    """Nanoseconds since the start. The match advances it, and so does every reading."""

    def __init__(self) -> None:
        self._base = 0
        self._extra = 0
        self._readings = 0
        """Readings since the last step or event."""
        self.step_nanoseconds = 20_000_000

    def at_step(self, steps: int) -> None:
        time = steps * self.step_nanoseconds
        if time > self._base:
            self._base = time
            self._readings = 0

    def at_event(self, index: int) -> None:
        """Set the time of an event. It can go back, when the judge returns to an earlier state."""
        self._base = index * EVENT_NANOSECONDS
        self._extra = self._readings = 0

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._extra += int(seconds * 1_000_000_000)

    def read(self) -> int:
        doublings = min(self._readings // READINGS_BEFORE_DOUBLING, MAX_DOUBLINGS)
        self._readings += 1
        self._extra += TICK_NANOSECONDS << doublings
        return self._base + self._extra


def install(key: str) -> Clock:
    """Replace the real clock and the real randomness in this process."""
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
    _install_randomness(draw)
    return clock


class _Replacement(type):
    """The metaclass of classes that replace `datetime` and `date`.

    Instances of the real class count as instances of its replacement: trusted code still makes
    them.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        real = cls.__dict__.get("_real")
        return isinstance(instance, real) if real else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = cls.__dict__.get("_real")
        return issubclass(subclass, real) if real else super().__subclasscheck__(subclass)


def _install_dates(clock: Clock) -> None:
    class Now(dt.datetime, metaclass=_Replacement):
        _real = dt.datetime

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Self:
            moment = EPOCH_SECONDS + clock.read() / 1e9
            return cls.fromtimestamp(moment, tz or dt.UTC).replace(tzinfo=tz)

        @classmethod
        def utcnow(cls) -> Self:
            return cls.now()

        @classmethod
        def today(cls) -> Self:
            return cls.now()

    class Today(dt.date, metaclass=_Replacement):
        _real = dt.date

        @classmethod
        def today(cls) -> Self:
            return cls.fromordinal(Now.now().toordinal())

    # Later imports get a new module. Trusted code, which is imported already, keeps the real one.
    module = ModuleType("datetime", dt.__doc__)
    module.__dict__.update(dt.__dict__)
    for name, replacement in (("datetime", Now), ("date", Today)):
        # The real names, so that pickle finds the class again.
        replacement.__module__, replacement.__name__, replacement.__qualname__ = (
            "datetime",
            name,
            name,
        )
        setattr(module, name, replacement)
    sys.modules["datetime"] = module


def _install_randomness(draw: Draw) -> None:
    os.urandom = draw.bytes
    random._urandom = draw.bytes  # type: ignore[attr-defined]  # noqa: SLF001
    seed = draw.integer()
    random.seed(seed)
    uuid.uuid1 = _uuid
    numpy = load_numpy()
    if numpy is None:
        return
    numpy.random.seed(seed % 2**32)
    real = numpy.random.default_rng
    numpy.random.default_rng = lambda given=None: real(seed if given is None else given)


@cache
def load_numpy() -> Any:
    """Return numpy, or None if it is not among the packages of this competition.

    The fork server calls this too, and its guests remember the result: an import takes several
    times as long as all else in a start, and a look for what is not there takes a while too.
    """
    try:
        importlib.import_module("numpy.random")
        return importlib.import_module("numpy")
    except ImportError:
        return None


def _uuid(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    del node, clock_seq
    return uuid.uuid4()
