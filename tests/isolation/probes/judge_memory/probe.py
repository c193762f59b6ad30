"""Read the judge's memory from /proc."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    with Path(f"/proc/{given['pid']}/mem").open("rb", buffering=0) as memory:
        memory.seek(given["address"])
        return memory.read(given["length"]).decode()
