"""Spelling a name so that a shell reads it and a rule about words does not: `p?ssword`."""

import re
from collections.abc import Iterable
from typing import Final

_LONG_WORD: Final = re.compile(r"[A-Za-z]{4,}")
_SPECIAL: Final = re.compile(r"[^\w./?*-]")


def mentions(text: str, words: Iterable[str]) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def veil(text: str, words: Iterable[str]) -> str:
    """Put a pattern in the place of one letter of each of these words."""
    for word in words:
        text = re.sub(re.escape(word), _veiled, text, flags=re.IGNORECASE)
    return text


def veil_all(path: str) -> str:
    """Do so with every word, extensions apart, where nobody knows which one was refused."""
    return _LONG_WORD.sub(_veiled, path)


def for_shell(path: str) -> str:
    """Put a pattern in the place of each character that a shell would have to have quoted."""
    return _SPECIAL.sub("?", path)


def _veiled(word: re.Match[str]) -> str:
    return f"{word[0][0]}?{word[0][2:]}"
