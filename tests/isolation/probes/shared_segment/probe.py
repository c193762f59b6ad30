"""Leave a segment of shared memory behind."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    create, mine = 0o1000, 0o600
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.shmget(0, 4096, create | mine)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
