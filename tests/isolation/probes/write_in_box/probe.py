"""Write to the only writable directory, without permission for it."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    Path("/box/mark").write_text("here", encoding="utf-8")
    return True
