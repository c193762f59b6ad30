"""A guest that runs, as its judge holds it: two pipes, what it prints, and how to end it."""

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from tiltyard.foundation.printable import printable
from tiltyard.isolation.host.limits import JailError

END_SECONDS: Final = 30


class Ends(NamedTuple):
    """What the judge holds of a guest."""

    to_guest: int
    from_guest: int
    output: int
    ended: int
    """Here is told how it ended."""


class Guest:
    """A running guest. End it with `kill`, or use it in a `with` statement."""

    def __init__(
        self, ends: Ends, born: Callable[[], int], kept: int, and_then: Callable[[], None] | None
    ) -> None:
        self.to_guest = ends.to_guest
        """Write here what the guest is to read."""
        self.from_guest = ends.from_guest
        """Read here what the guest writes; its end means that the guest hung up or died."""
        self._owner = os.getpid()
        self._ends = ends
        self._born = born
        self._process: int | None = None
        """A handle on the process itself, once it was waited for."""
        self._stillborn: JailError | None = None
        self._kept = kept
        self._and_then = and_then
        """Done when the guest is no more."""
        self._said: bytes | None = None
        self._code: int | None = None

    def wait_until_born(self) -> int:
        """Return a handle on its process, or raise if there is none to be had."""
        if self._stillborn is not None:
            raise self._stillborn
        if self._process is None:
            try:
                self._process = self._born()
            except JailError as error:
                self._stillborn = error
                raise
        return self._process

    @property
    def pid(self) -> int:
        """Its number here; -1 when it is gone."""
        handle = self.wait_until_born()
        told = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="utf-8")
        return int(told.partition("Pid:")[2].split()[0])

    def output(self) -> str:
        """Return what the guest printed: the beginning and the end, safe to show."""
        said = self._read_output() if self._said is None else self._said
        text = said.decode("utf-8", "replace")
        return printable(text, keep="\n\t", replacement="\N{REPLACEMENT CHARACTER}")

    def wait(self, seconds: float) -> bool:
        """Wait until the guest has ended by itself; False if it has not."""
        if self._said is not None:
            return True
        return bool(poll(self._ends.ended, seconds))

    @property
    def signal(self) -> int | None:
        """The signal that ended the guest, if it has ended so. A guest can pretend this."""
        if self._code is None and self._said is None and self.wait(0):
            self._code = int(os.read(self._ends.ended, 20) or b"0")
        return None if self._code is None or self._code >= 0 else -self._code

    def kill(self) -> None:
        """End the guest and everything it started, and forget all but its output."""
        if self._said is not None:
            return
        if self._owner == os.getpid():  # A copy made by fork only lets go.
            with suppress(JailError):  # Then there is nobody to end.
                handle = self.wait_until_born()
                # A namespace's first process: with it, and before its end is told, all others go.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                poll(self._ends.ended, END_SECONDS)
        self._said = self._read_output()
        for end in (*self._ends, *([] if self._process is None else [self._process])):
            os.close(end)
        if self._and_then is not None:
            self._and_then()

    def _read_output(self) -> bytes:
        half = self._kept // 2
        size = os.fstat(self._ends.output).st_size
        if size <= self._kept:
            return os.pread(self._ends.output, self._kept, 0)
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
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))
