"""A guest's clock and randomness: both depend on the match alone.

Time advances with the steps that an attack spends or the events of an episode, with `sleep`, and by
one tick for each reading. Random numbers are drawn from the match key. So a guest that uses them
behaves the same in every run. This is no protection: the jail is.
"""

import datetime as dt
import importlib
import os
import random
import sys
import time
import uuid
from types import ModuleType
from typing import Any, Final, Self

from tiltyard.foundation.draw import Draw

EPOCH_SECONDS: Final = 1_767_600_000
"""2026-01-05, the date in the simulated world."""
TICK_NANOSECONDS: Final = 1_000
OFFICIAL_SECONDS: Final = 1_200
EVENT_NANOSECONDS: Final = 1_000_000_000


class Clock:
    """Nanoseconds since the start. The match advances it, and so does every reading."""

    def __init__(self) -> None:
        self._base = 0
        self._extra = 0
        self.step_nanoseconds = 20_000_000

    def at_step(self, steps: int) -> None:
        self._base = max(self._base, steps * self.step_nanoseconds)

    def at_event(self, index: int) -> None:
        """Set the time of an event. It can go back, when the judge returns to an earlier state."""
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
