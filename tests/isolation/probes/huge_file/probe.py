"""Make a file of a terabyte, which costs nothing until it is read."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    with Path("/box/huge").open("wb") as file:
        file.truncate(1 << 40)
    return True
