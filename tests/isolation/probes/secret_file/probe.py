"""Read the judge's file."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    return Path(given["secret"]).read_text(encoding="utf-8")
