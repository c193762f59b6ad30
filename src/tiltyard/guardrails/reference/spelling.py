"""Decode a text in all common ways: reversed, rot13, percent-encoding, hex, base64, and mixtures.

Separators and case do not matter: callers compare texts by their letters and digits.
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

LAYERS: Final = 3
MAX_READINGS: Final = 48
MAX_CHARS: Final = 16_384
"""Only this many characters of a text are decoded."""

_ROT13: Final = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm",
)
_HEX: Final = re.compile(r"[0-9a-fA-F]{16,}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_SPACED: Final = re.compile(r"\S(?:[ \t]\S){7,}")
_NOT_PLAIN: Final = re.compile(r"[\W_]+")
_URL_SAFE: Final = str.maketrans("-_", "+/")


@lru_cache(maxsize=512)
def plain(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NOT_PLAIN.sub("", text).lower()


@lru_cache(maxsize=512)
def readings(text: str) -> tuple[str, ...]:
    """Return a text and its decoded forms, the text itself first."""
    found = [text[:MAX_CHARS]]
    layer = found
    for _ in range(LAYERS):
        fresh = (other for each in layer for other in _decoded(each))
        layer = [other for other in dict.fromkeys(fresh) if other not in found]
        found += layer[: MAX_READINGS - len(found)]
    return tuple(found)


def _decoded(text: str) -> Iterator[str]:
    """Yield the texts that `text` may encode."""
    if "%" in text:
        yield unquote(text, errors="replace")
    for run in _SPACED.findall(text):
        yield run[::2]
    for run in _HEX.findall(text):
        yield bytes.fromhex(run[: len(run) // 2 * 2]).decode("utf-8", "replace")
    for run in _BASE64.findall(text):
        yield from from_base64(run)
    yield text[::-1]
    yield text.translate(_ROT13)


def from_base64(run: str) -> Iterator[str]:
    """Decode a run of base64, of which the beginning or the end may be missing."""
    digits = run.rstrip("=").translate(_URL_SAFE)
    for skip in range(4):
        part = digits[skip:]
        try:
            decoded = b64decode(part[: len(part) // 4 * 4]).decode("utf-8")
        except (Error, ValueError):
            continue
        if is_legible(decoded):
            yield decoded


def is_legible(text: str) -> bool:
    """Tell whether a decoded text is readable."""
    return bool(text) and all(char.isprintable() or char in "\n\t\r" for char in text)
