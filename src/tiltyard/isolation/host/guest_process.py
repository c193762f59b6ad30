"""A running guest as the judge holds it: two pipes, its output, and how to kill it."""

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self

from tiltyard.foundation.printable import printable
from tiltyard.isolation.host.limits import JailError

END_SECONDS: Final = 30


class Guest(Protocol):
    """A process at the other end of two pipes."""

    to_guest: int
    """The judge writes here."""
    from_guest: int
    """The judge reads here. End of file means that the guest closed its end, or died."""

    @property
    def pid(self) -> int:
        """The process id, as the judge sees it."""

    def output(self) -> str:
        """Return what the guest printed."""

    def exit_code(self, seconds: float) -> int | None:
        """Wait until the guest ends by itself, and return its exit code.

        For a guest that a signal ended, return the signal as a negative number. Return None if the
        guest does not end. A guest can choose its exit code and its signal.
        """

    def kill(self) -> None:
        """End the guest."""


class Ends(NamedTuple):
    """The judge's descriptors for one guest."""

    to_guest: int
    from_guest: int
    output: int
    ended: int
    """A pipe to which the guest's supervisor writes the exit code."""


class JailedGuest:
    """A guest in the jail. End it with `kill`, or use it in a `with` statement."""

    def __init__(
        self,
        ends: Ends,
        receive_handle: Callable[[], int],
        kept_bytes: int,
        when_ended: Callable[[], None] | None,
    ) -> None:
        self.to_guest = ends.to_guest
        self.from_guest = ends.from_guest
        self._owner = os.getpid()
        self._ends = ends
        self._receive_handle = receive_handle
        self._handle: int | None = None
        """A pidfd of the process, after `wait_until_started`."""
        self._start_error: JailError | None = None
        self._kept_bytes = kept_bytes
        self._when_ended = when_ended
        self._output: bytes | None = None
        """What the guest printed, after it ended."""
        self._code: int | None = None

    def wait_until_started(self) -> int:
        """Return a pidfd of the process, or raise `JailError` if it cannot be started."""
        if self._start_error is not None:
            raise self._start_error
        if self._handle is None:
            try:
                self._handle = self._receive_handle()
            except JailError as error:
                self._start_error = error
                raise
        return self._handle

    @property
    def pid(self) -> int:
        """The process id, as the judge sees it; -1 if the process has ended."""
        handle = self.wait_until_started()
        info = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="utf-8")
        return int(info.partition("Pid:")[2].split()[0])

    def output(self) -> str:
        """Return the beginning and the end of what the guest printed, safe to show."""
        output = self._read_output() if self._output is None else self._output
        text = output.decode("utf-8", "replace")
        return printable(text, keep="\n\t", replacement="\N{REPLACEMENT CHARACTER}")

    def wait(self, seconds: float) -> bool:
        """Wait until the guest ends by itself; return False if it does not."""
        if self._output is not None:
            return True
        return bool(poll(self._ends.ended, seconds))

    def exit_code(self, seconds: float) -> int | None:
        if self._code is None and self._output is None and self.wait(seconds):
            told = os.read(self._ends.ended, 20)
            self._code = int(told) if told else None
        return self._code

    def kill(self) -> None:
        """End the guest and every process it started. Only its output is kept."""
        if self._output is not None:
            return
        if self._owner == os.getpid():  # A forked copy of the judge only closes its descriptors.
            with suppress(JailError):  # The guest was never started.
                handle = self.wait_until_started()
                # The guest is the first process of its namespace. The kernel kills all others
                # with it, before the supervisor reports its end.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                poll(self._ends.ended, END_SECONDS)
        self._output = self._read_output()
        for end in (*self._ends, *([] if self._handle is None else [self._handle])):
            os.close(end)
        if self._when_ended is not None:
            self._when_ended()

    def _read_output(self) -> bytes:
        half = self._kept_bytes // 2
        size = os.fstat(self._ends.output).st_size
        if size <= self._kept_bytes:
            return os.pread(self._ends.output, self._kept_bytes, 0)
        left_out = f"\n[{size - 2 * half} bytes left out]\n".encode()
        return (
            os.pread(self._ends.output, half, 0)
            + left_out
            + os.pread(self._ends.output, half, size - half)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


def poll(descriptor: int, seconds: float) -> bool:
    """Wait until a descriptor is readable; return False if it is not within `seconds`."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))
