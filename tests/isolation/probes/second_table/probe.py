"""Make system calls with the numbers of x32."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(0x40000000 | 39)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
