"""Disguise words as shell patterns (`p?ssword`): a rule that looks for words misses them."""

import re
from collections.abc import Iterable
from typing import Final

_LONG_WORD: Final = re.compile(r"[A-Za-z]{4,}")
_SPECIAL: Final = re.compile(r"[^\w./?*-]")


def mentions(text: str, words: Iterable[str]) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def disguise(text: str, words: Iterable[str]) -> str:
    """Replace one letter of each of these words by `?`."""
    for word in words:
        text = re.sub(re.escape(word), _disguised, text, flags=re.IGNORECASE)
    return text


def disguise_all(path: str) -> str:
    """Replace one letter of every long word, for when the refused word is unknown."""
    return _LONG_WORD.sub(_disguised, path)


def for_shell(path: str) -> str:
    """Replace each character that needs quotes in a shell by `?`."""
    return _SPECIAL.sub("?", path)


def _disguised(word: re.Match[str]) -> str:
    return f"{word[0][0]}?{word[0][2:]}"
