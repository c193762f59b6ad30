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
    r"""|(?P<word>(?:[^\s"“”`.,:;!?]|[.,:;!?](?![.,:;!?]{0,7}(?:\s|$)))+)"""
)
_ENDS: Final = frozenset(".!?;\n")


def sentences(string: str) -> list[list[Token]]:
    """Cut a text into sentences of tokens, without quoted lines (`> ...`)."""
    found: list[list[Token]] = [[]]
    line_begins, line_quoted = True, False
    for match in _TOKEN.finditer(string):
        start, stop = match.span()
        kind = match.lastgroup or ""
        raw = match.group()
        if line_begins:
            line_quoted = raw.startswith(">")
        line_begins = raw == "\n"
        if kind == "mark" and not _ENDS.isdisjoint(raw):
            if found[-1]:
                found.append([])
        elif not line_quoted:
            word = {"quoted": "", "mark": raw[0]}.get(kind, lower(raw))
            found[-1].append(Token(kind, start, stop, word))
    return found
