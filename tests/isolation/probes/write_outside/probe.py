"""Leave a file in the judge's directory."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    (Path(given["outside"]) / "mark").write_text("here", encoding="utf-8")
    return True
