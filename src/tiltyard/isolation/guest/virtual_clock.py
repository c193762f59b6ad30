"""A guest's time and chance: both are functions of what happens in the match.

Time advances with the steps that an attack spends, or with the events of an episode, by what is
slept, and by a tick for each reading. Randomness is drawn from the match key. So a guest that asks
the clock or rolls dice does the same each time; a guest that means harm gains nothing by it.
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


class _Stand(type):
    """For classes that stand in another's place: what is an instance of that is one of theirs.

    Dates that were made before, or by those who hold on to the real classes, stay dates.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        real = cls.__dict__.get("_real")
        return isinstance(instance, real) if real else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = cls.__dict__.get("_real")
        return issubclass(subclass, real) if real else super().__subclasscheck__(subclass)


def _install_dates(clock: Clock) -> None:
    class Now(dt.datetime, metaclass=_Stand):
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

    class Today(dt.date, metaclass=_Stand):
        _real = dt.date

        @classmethod
        def today(cls) -> Self:
            return cls.fromordinal(Now.now().toordinal())

    # A module of its own, for who imports it from now on: what is trusted keeps the real one.
    module = ModuleType("datetime", dt.__doc__)
    module.__dict__.update(dt.__dict__)
    for name, stand in (("datetime", Now), ("date", Today)):
        # Under the real one's name, so that whoever packs an instance finds its class again.
        stand.__module__, stand.__name__, stand.__qualname__ = "datetime", name, name
        setattr(module, name, stand)
    sys.modules["datetime"] = module


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
