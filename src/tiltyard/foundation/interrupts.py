"""Tells an interrupt by the user from a `KeyboardInterrupt` that a guardrail or an attack raises.

Both look alike: anyone can raise `KeyboardInterrupt`. Inside `marked_interrupts`, a signal raises
`Interrupted`, and a plain `KeyboardInterrupt` is an exception like any other.
"""

import signal
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from importlib import import_module
from types import FrameType
from typing import Any, Final, Self

Handler = Callable[[int, FrameType | None], Any] | int | None

_INTERRUPT: Final = (int(signal.SIGINT),)
_STOP: Final = (*_INTERRUPT, *map(int, (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)))
_IGNORED: Final = int(signal.SIG_IGN)
_SIGNALS: Final[Any] = import_module("_signal")
"""What `signal` is made of. `signal` itself turns handlers into enums and back, which would take as
long as a message of an episode."""


class Interrupted(KeyboardInterrupt):
    """A signal asks this process to stop."""


class marked_interrupts(ContextDecorator):  # noqa: N801 - used like a function, and faster
    """Let Ctrl-C raise `Interrupted` in a `with` block or a decorated function.

    With `stopping`, SIGTERM, SIGHUP and SIGQUIT raise it too. Signals that this process ignores
    stay ignored. Blocks can be nested, and do nothing outside the main thread.
    """

    _active = False

    def __init__(self, *, stopping: bool = False) -> None:
        self._stopping = stopping
        self._before: dict[int, Handler] = {}

    def _recreate_cm(self) -> Self:
        return type(self)(stopping=self._stopping)

    def __enter__(self) -> None:
        if marked_interrupts._active or threading.current_thread() is not threading.main_thread():
            return
        for number in _STOP if self._stopping else _INTERRUPT:
            before = _SIGNALS.getsignal(number)
            # None stands for a handler that was not installed from Python.
            if before is not None and before != _IGNORED:
                self._before[number] = before
                _SIGNALS.signal(number, _interrupting(before))
        marked_interrupts._active = _INTERRUPT[0] in self._before

    def __exit__(self, *error: object) -> None:
        if not self._before:
            return
        marked_interrupts._active = False
        for number, before in self._before.items():
            _SIGNALS.signal(number, before)
        self._before = {}


def _interrupting(before: Handler) -> Callable[[int, FrameType | None], None]:
    """Return a handler that raises `Interrupted` where the handler before would end the process."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if callable(before) and before is not signal.default_int_handler:
            try:
                before(number, frame)
            except KeyboardInterrupt:
                raise Interrupted from None
        else:
            raise Interrupted

    return interrupt
