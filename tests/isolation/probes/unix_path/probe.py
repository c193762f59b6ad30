"""Reach a listener of the judge's that is a file."""

import socket
from typing import Any


def probe(given: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(given["path"])
    return True
