"""Cut a text into sentences of tokens: words, quotations and marks, with their positions."""

import re
from typing import Final, NamedTuple

from tiltyard.world.text import lower


class Token(NamedTuple):
    """A word, a quotation or a mark, and its position."""

    kind: str
    start: int
    stop: int
    word: str
    """In lower case; empty for quotations, so that quoted words never count as grammar."""


_TOKEN: Final = re.compile(
    r"""(?P<quoted>"[^"\n]*"|“[^“”\n]*”|`[^`\n]*`)"""
    r"""|(?P<url>https?://[^\s"`<>]*[^\s"`<>.,;:!?)])"""
    r"""|(?P<mark>[.,:;!?]{1,8}(?=\s|$)|\n|["“”`])"""
    r"""|(?P<word>(?:[^\s"“”`.,:;!?]++|[.,:;!?](?![.,:;!?]{0,7}(?:\s|$)))++)"""
)
_ENDS: Final = frozenset(".!?;\n")


def sentences(string: str) -> list[list[Token]]:
    """Cut a text into sentences of tokens, without quoted lines (`> ...`)."""
    current: list[Token] = []
    found = [current]
    lowered = lower(string)
    line_begins, line_quoted = True, False
    for match in _TOKEN.finditer(string):
        kind = match.lastgroup or ""
        start, stop = match.span()
        if line_begins:
            line_quoted = string.startswith(">", start)
            line_begins = False
        if kind == "mark":
            word = string[start:stop]
            line_begins = word == "\n"
            if not _ENDS.isdisjoint(word):
                if current:
                    current = []
                    found.append(current)
                continue
            word = word[0]
        else:
            word = "" if kind == "quoted" else lowered[start:stop]
        if not line_quoted:
            current.append(Token(kind, start, stop, word))
    return found
