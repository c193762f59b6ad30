"""The deterministic agent's grammar: from labelled text to operations.

Owns what counts as an instruction; `docs/grammar.md` states the same for readers. The parser is
a plain recursive descent over tokens: `tokens` cuts a text into sentences, `sentence` reads what
all clauses share, `clauses` has one function a verb, `operations` is what comes out.
"""

from functools import lru_cache
from typing import Final

from tiltyard.agents.grammar.clauses import gather, read_sentence
from tiltyard.agents.grammar.operations import (
    LAST,
    Carry,
    Follow,
    Instructions,
    It,
    Note,
    OpenHit,
    Operation,
    ReadHit,
    Recipient,
    Recode,
    Remember,
    Split,
    Wait,
    What,
)
from tiltyard.agents.grammar.tokens import sentences
from tiltyard.world.text import USER, Cutter, Text, by_user

__all__ = [
    "LAST",
    "Carry",
    "Follow",
    "Instructions",
    "It",
    "Note",
    "OpenHit",
    "Operation",
    "ReadHit",
    "Recipient",
    "Recode",
    "Remember",
    "Split",
    "Wait",
    "What",
    "instructions",
]

REMEMBERED_TEXTS: Final = 4096
REMEMBERED_STRINGS: Final = 32_768
MAX_READ_CHARS: Final = 32_768
"""What stands further down in a document is not read as instructions."""
MAX_REMEMBERED_CHARS: Final = 8192
"""A longer text is read anew each time, so that what is remembered stays small."""


def instructions(text: Text) -> Instructions:
    """Return what a text orders; nothing, for prose."""
    if len(text.string) > MAX_REMEMBERED_CHARS:
        return _parse(text.slice(0, MAX_READ_CHARS))
    # Most documents are prose, which their string alone tells; the labels need no look then.
    as_if_by_user = _parse_user(text.string)
    if not as_if_by_user or (len(text.pieces) == 1 and text.pieces[0].origin is USER):
        return as_if_by_user
    return _parse_again(text)


def _parse(text: Text) -> Instructions:
    cutter = Cutter(text)
    return gather(
        [placed for tokens in sentences(text.string) for placed in read_sentence(cutter, tokens)]
    )


_parse_again = lru_cache(maxsize=REMEMBERED_TEXTS)(_parse)


@lru_cache(maxsize=REMEMBERED_STRINGS)
def _parse_user(string: str) -> Instructions:
    return _parse(by_user(string))
