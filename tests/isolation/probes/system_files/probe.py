"""Read the system's password hashes."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    return "root:" in Path("/etc/shadow").read_text(encoding="utf-8")
