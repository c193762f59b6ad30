"""Read the judge's file by a path with `..` out of the submission."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    climbed = Path(__file__).parent / ".." / Path(given["secret"]).name
    return climbed.read_text(encoding="utf-8")
