"""Ask to handle page faults, which many kernel exploits use."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    number = 323 if os.uname().machine == "x86_64" else 282
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(number, 1)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
