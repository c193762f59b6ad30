"""A guest without a jail, for your own code on a machine that has no jail.

It speaks the same protocol in an ordinary process. Nothing confines it, so its results are marked
as not comparable. Never run other people's code this way.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

OUTPUT_BYTES: Final = 1 << 20
_PROGRAM: Final = (
    "import sys; from tiltyard.isolation.guest.serve import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])"
)


class UnsafeGuest:
    """An unconfined process that runs the guest's side of the protocol."""

    def __init__(self, submission: Path) -> None:
        their_read, self.to_guest = os.pipe()
        self.from_guest, their_write = os.pipe()
        self._output_fd = os.memfd_create("output", os.MFD_CLOEXEC)
        command = [sys.executable, "-s", "-P", "-B", "-c", _PROGRAM]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, str(their_read), str(their_write), str(submission.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=self._output_fd,
            stderr=self._output_fd,
            pass_fds=(their_read, their_write),
            env={"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        os.close(their_read)
        os.close(their_write)
        self.pid = self._process.pid
        self._output: str | None = None
        """What the guest printed, after it ended."""

    def output(self) -> str:
        """Return the end of what the guest printed."""
        if self._output is not None:
            return self._output
        size = os.fstat(self._output_fd).st_size
        end = os.pread(self._output_fd, OUTPUT_BYTES, max(0, size - OUTPUT_BYTES))
        return end.decode("utf-8", "replace")

    def exit_code(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        if self._output is not None:
            return
        self._process.kill()
        self._process.wait()
        self._output = self.output()
        for descriptor in (self.to_guest, self.from_guest, self._output_fd):
            os.close(descriptor)
