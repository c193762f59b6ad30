"""Leave a file in shared memory."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    Path(given["shared"]).write_text("here", encoding="utf-8")
    return True
