"""Read the judge's environment from /proc."""

from pathlib import Path
from typing import Any


def probe(given: dict[str, Any]) -> object:
    environ = Path(f"/proc/{given['pid']}/environ").read_bytes()
    pairs = dict(pair.split(b"=", 1) for pair in environ.split(b"\0") if b"=" in pair)
    return pairs[given["variable"].encode()].decode()
