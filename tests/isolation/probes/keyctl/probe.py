"""Ask for the session's key ring, which no namespace separates."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    number = 250 if os.uname().machine == "x86_64" else 219
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(number, 0, -3, 0)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
