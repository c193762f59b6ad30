"""Run `tiltyard` so that it ends with the process that has started it.

The signal of a parent's death stays set when a process becomes another program. So this module sets
it, and then becomes the command. A worker that is killed leaves no evaluation behind.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_SET_DEATH_SIGNAL: Final = 1
"""The option of `prctl` that names the signal of a parent's death."""


def main() -> None:
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(1)  # The worker has ended meanwhile.
    os.execv(sys.executable, [sys.executable, "-m", "tiltyard", *command])  # noqa: S606


if __name__ == "__main__":
    main()
