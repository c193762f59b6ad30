"""Recognize protected content by the name of a file or by its text.

A name is sensitive if it consists only of sensitive words: `secret.txt` and `api-key.md` do,
`secret-santa.md` and `secretary-rota.txt` do not. A text is sensitive if it contains a random
value: a long mixture of letters and digits that does not encode ordinary words.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Final

from tiltyard.guardrails.reference.spelling import from_base64, is_legible, plain, readings
from tiltyard.guardrails.targets import canonical

VALUE_PIECE_CHARS: Final = 10
"""Pieces start at multiples of their length, so any 19 characters of a value contain one."""
PROSE_PIECE_CHARS: Final = 16
"""Longer than for values, because ordinary words can match by chance."""
MAX_VALUE_CHARS: Final = 80
MIN_VALUE_CHARS: Final = 16
MIN_CHANGES: Final = 4

_SENSITIVE: Final = frozenset(
    (
        *("secret", "secrets", "password", "passwords", "passwd", "passphrase", "passphrases"),
        *("credential", "credentials", "creds", "token", "tokens", "private", "confidential"),
        *("apikey", "apikeys", "privatekey", "keystore"),
    )
)
_ATTRIBUTES: Final = frozenset(
    (
        *("my", "our", "the", "your", "api", "key", "keys", "client", "access", "admin", "root"),
        *("master", "user", "users", "login", "account", "accounts", "db", "database", "backup"),
        *("old", "new", "copy", "prod", "production", "dev", "test", "main", "company", "file"),
    )
)
"""Words that may accompany a sensitive word in the name of a protected file."""
_KEY_FILES: Final = frozenset((".env", ".netrc", ".pgpass", "id_rsa", "id_ed25519"))
_KEY_ENDINGS: Final = (".pem", ".key", ".kdbx", ".p12", ".pfx")
_NAME_WORD: Final = re.compile(r"[a-z]+")
_EXAMPLES: Final = tuple(
    name + ending
    for name in ("secret", "secrets", "password", "passwords", "credentials", "token", "private")
    for ending in ("", ".txt", ".md", ".json", ".csv")
)
_VALUE: Final = re.compile(rf"[A-Za-z0-9+/]{{{MIN_VALUE_CHARS},}}={{0,2}}")
_URL: Final = re.compile(r"https?://[^\s?#\"'“”`<>]+")
_NAMED_VALUE: Final = re.compile(
    r"\b(?:password|passwd|passphrase|secret|token|api[ _-]?key|pin)\s*(?:is|=|:)\s*"
    r"(?=\S*\d)(?=\S*[a-z])(\S{6,})",
    re.IGNORECASE,
)
_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*")


@lru_cache(maxsize=1024)
def has_sensitive_name(path: str) -> bool:
    """Tell whether the name of a file or of one of its parents is sensitive."""
    *folders, name = canonical(path).lower().split("/")
    if name in _KEY_FILES or name.endswith(_KEY_ENDINGS):
        return True
    stem = name[: name.rindex(".")] if "." in name[1:] else name
    return any(_is_sensitive(part) for part in (*folders, stem))


def _is_sensitive(name: str) -> bool:
    words = _NAME_WORD.findall(name)
    if any(both in _SENSITIVE for both in (a + b for a, b in pairwise(words))):
        return True
    known = all(word in _SENSITIVE or word in _ATTRIBUTES for word in words)
    return known and any(word in _SENSITIVE for word in words)


def may_match_sensitive(pattern: str) -> bool:
    """Tell whether a shell pattern can match a sensitive name."""
    name = canonical(pattern).lower()
    return any(fnmatchcase(example, name) for example in _EXAMPLES)


@lru_cache(maxsize=512)
def values(text: str) -> tuple[str, ...]:
    """Return the random values in a text: keys, codes, passwords."""
    return tuple(dict.fromkeys(_values(text)))


def _values(text: str) -> Iterator[str]:
    # The path of a URL can look random, and is no secret.
    for run in _VALUE.findall(_URL.sub(" ", text)):
        if _looks_random(run):
            words = next(_words_in(run), "")
            yield from _values(words) if words else (plain(run),)
    for value in _NAMED_VALUE.findall(text):
        yield plain(value)
    for block in _KEY_BLOCK.findall(text):
        yield plain(block)


def _looks_random(run: str) -> bool:
    """Tell whether letters and digits alternate as often as in random text."""
    return sum(a.isdigit() != b.isdigit() for a, b in pairwise(run)) >= MIN_CHANGES


def _words_in(run: str) -> Iterator[str]:
    """Yield the readable text that a run of base64 or hex encodes, in one layer or several."""
    try:
        decoded = bytes.fromhex(run[: len(run) // 2 * 2]).decode("utf-8")
    except ValueError:
        decoded = ""
    for text in (decoded, *from_base64(run)):
        if " " in text.strip() and is_legible(text):
            yield text
        elif _VALUE.fullmatch(text):
            yield from _words_in(text)


def carries(text: str, guarded: tuple[str, ...]) -> bool:
    """Tell whether a text contains a piece of guarded content, in any common encoding."""
    if not guarded:
        return False
    spellings = [plain(reading) for reading in readings(text)]
    return any(
        piece in spelling for whole in guarded for piece in _pieces(whole) for spelling in spellings
    )


def _pieces(whole: str) -> list[str]:
    size = VALUE_PIECE_CHARS if len(whole) <= MAX_VALUE_CHARS else PROSE_PIECE_CHARS
    if len(whole) < 2 * size:
        return [whole]
    return [whole[start : start + size] for start in range(0, len(whole) - size + 1, size)]
