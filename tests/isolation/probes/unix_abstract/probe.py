"""Reach a listener of the judge's that has a name and no file."""

import socket
from typing import Any


def probe(given: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("\0" + given["abstract"])
    return True
