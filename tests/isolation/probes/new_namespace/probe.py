"""Become root in a new user namespace."""

import ctypes
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    new_user = 0x10000000
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.unshare(new_user)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
