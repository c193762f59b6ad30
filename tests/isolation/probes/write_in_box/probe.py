"""Write to the only directory that is not read-only, without having been given it."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    Path("/box/mark").write_text("here", encoding="utf-8")
    return True
