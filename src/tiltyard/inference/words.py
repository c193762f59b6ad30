"""Split names and descriptions into plain words."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

MAX_CHARS: Final = 4_000
"""Characters of a description that inference reads. Descriptions are hostile, and may be long."""

_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])\s+|\n\s*\n|:\s+|\s[-\N{EN DASH}\N{EM DASH}]\s")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'\N{RIGHT SINGLE QUOTATION MARK}]*|[,;/&]|[0-9]+")
_E_MAIL: Final = re.compile(r"\be-mail", re.IGNORECASE)


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a name: `sendEMail`, `send_e-mail` and `send.email` are alike."""
    name = name[:200].replace("EMail", "Email").replace("eMail", "email")
    found = [part.lower() for part in _NAME_PART.findall(_E_MAIL.sub("email", name))]
    return tuple(found)


def name_segments(name: str) -> list[tuple[str, ...]]:
    """Return the words of each part of a dotted name, such as `files.share`."""
    parts = [split_name(part) for part in re.split(r"[./:]+|__", name[:200])]
    return [part for part in parts if part]


def sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence in lower case. Commas and slashes stay, as words."""
    text = _E_MAIL.sub("email", text[:MAX_CHARS].replace("e.g.", "eg").replace("i.e.", "ie"))
    for part in _SENTENCE_END.split(text):
        words = [
            word.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
            for word in _WORD.findall(part)
        ]
        if words:
            yield words


def first_sentence(text: str) -> list[str]:
    """Return the words of the first sentence."""
    return next(sentences(text), [])


@lru_cache(maxsize=8192)
def base_forms(word: str) -> tuple[str, ...]:
    """Return what a word may be a form of: `copies` is `copies`, `copie` or `copy`."""
    found = [word]
    if word.endswith("ies"):
        found.append(word[:-3] + "y")
    if word.endswith("es"):
        found.append(word[:-2])
    if word.endswith("s") and not word.endswith("ss"):
        found.append(word[:-1])
    if word.endswith("'s"):
        found.append(word[:-2])
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word[: -len(ending)]
            found += [stem, stem + "e"]
            if stem[-1:] == stem[-2:-1]:
                found.append(stem[:-1])
    return tuple(found)


def present_forms(word: str) -> tuple[str, ...]:
    """Return what a word may be the imperative or third person of: `sends`, but not `sent`."""
    return (word,) if word.endswith(("ing", "ed")) else base_forms(word)


def has_any(words: Iterable[str], known: frozenset[str]) -> str:
    """Return the first word that is a form of a known one, or an empty string."""
    for word in words:
        for form in base_forms(word):
            if form in known:
                return form
    return ""
