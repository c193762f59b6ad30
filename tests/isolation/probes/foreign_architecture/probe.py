"""Make 32-bit system calls, where the numbers mean other calls."""

import ctypes
import mmap
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    getpid_the_old_way = bytes.fromhex("b814000000cd80c3")
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(getpid_the_old_way)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid()
