"""Set up an io_uring, whose calls bypass every filter."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    number = 425
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(number, 4, ctypes.create_string_buffer(256))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
