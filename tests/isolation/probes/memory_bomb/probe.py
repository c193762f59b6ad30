"""Take more memory than the limit."""

from typing import Any


def probe(given: dict[str, Any]) -> object:
    del given
    return len(bytearray(600 << 20)) == 600 << 20
