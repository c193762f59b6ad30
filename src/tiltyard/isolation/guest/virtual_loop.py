"""The event loop of a guest: its time is virtual, and nothing runs beside it.

A coroutine that sleeps or waits with a timeout gets the same result in every run, at once. There
are no sockets: the jail has no network.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tiltyard.isolation.guest.virtual_clock import Clock

_NEVER: Final = "the coroutine waits for something that never happens"


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs tasks in order. When all of them wait, time jumps to the next timer."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._now = 0.0
        self._gave_up = False
        self._selector = self  # What the base class asks for events.

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Wait until the next timer."""
        if timeout is None:
            if self._gave_up:
                raise RuntimeError(_NEVER)
            self._gave_up = True
            for task in asyncio.all_tasks(self):
                task.cancel(_NEVER)  # The exception then names the line that waits.
            return []
        self._now += timeout
        self._clock.sleep(timeout)
        return []

    def _process_events(self, events: list[Any]) -> None:
        del events

    def _write_to_self(self) -> None:
        """Do nothing: no other thread waits for this loop."""

    def run_in_executor(  # type: ignore[override]  # the base class ties its type variables
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Call the function now: threads would finish in another order in every run."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the function is the submission's
            future.set_exception(error)
        return future
