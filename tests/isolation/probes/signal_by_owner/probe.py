"""Have the kernel signal the judge, as the owner of a descriptor."""

import fcntl
import os
from typing import Any


def probe(given: dict[str, Any]) -> object:
    fcntl.fcntl(given["read"], fcntl.F_SETOWN, given["pid"])
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, given["pid"])
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writer, b"x")
    return True
