"""Signal the judge with tgkill, which a guest may use for its own threads."""

import ctypes
import os
import signal
from typing import Any


def probe(given: dict[str, Any]) -> object:
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.tgkill(given["pid"], given["pid"], int(signal.SIGUSR1))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
