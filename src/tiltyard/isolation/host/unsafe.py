"""A guest without a jail: for one's own code, on a machine that has none.

The same protocol in a plain process. Nothing confines it, so its results are marked and never
compared; a stranger's code has no business here.
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


class PlainGuest:
    """A process that runs the guest's half of the protocol, and could do anything else."""

    def __init__(self, submission: Path) -> None:
        their_read, self.to_guest = os.pipe()
        self.from_guest, their_write = os.pipe()
        self._output = os.memfd_create("output", os.MFD_CLOEXEC)
        line = [sys.executable, "-s", "-P", "-B", "-c", _PROGRAM]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [*line, str(their_read), str(their_write), str(submission)],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            pass_fds=(their_read, their_write),
            env={"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        os.close(their_read)
        os.close(their_write)
        self.pid = self._process.pid
        self._said: str | None = None

    def output(self) -> str:
        """Return the end of what it printed."""
        if self._said is not None:
            return self._said
        size = os.fstat(self._output).st_size
        said = os.pread(self._output, OUTPUT_BYTES, max(0, size - OUTPUT_BYTES))
        return said.decode("utf-8", "replace")

    def kill(self) -> None:
        if self._said is not None:
            return
        self._process.kill()
        self._process.wait()
        self._said = self.output()
        for descriptor in (self.to_guest, self.from_guest, self._output):
            os.close(descriptor)
