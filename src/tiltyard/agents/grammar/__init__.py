"""The deterministic agent's grammar: from labelled text to operations.

This package decides what counts as an instruction; `docs/grammar.md` describes it for readers. The
parser is a plain recursive descent over tokens: `tokens` cuts a text into sentences, `sentence`
reads what all clauses share, `clauses` has one function for each verb, and `operations` has the
results. `saying` goes the other way: from operations to words.
"""

from functools import lru_cache
from typing import Final

from tiltyard.agents.grammar.calls import read_text
from tiltyard.agents.grammar.clauses import gather
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

REMEMBERED_TEXTS: Final = 1024
REMEMBERED_MESSAGES: Final = 8192
REMEMBERED_PROSE: Final = 32_768
MAX_READ_CHARS: Final = 16_384
"""The agent looks for instructions only in this many characters of a document."""
LONG_CHARS: Final = 4096
"""Longer texts have caches of their own, with few places, so that these stay small too."""
REMEMBERED_LONG_PROSE: Final = 512
REMEMBERED_LONG_TEXTS: Final = 64


NO_INSTRUCTIONS: Final = Instructions((), (), ())


def instructions(text: Text) -> Instructions:
    """Return the instructions in a text; none for prose."""
    if len(text.string) > LONG_CHARS:
        read = text.slice(0, MAX_READ_CHARS)
        return NO_INSTRUCTIONS if _is_long_prose(read.string) else _parse_long_again(read)
    if len(text.pieces) == 1 and text.pieces[0].origin is USER:
        return _parse_user(text.string)
    # Most documents are prose. Whether a text is prose depends on its string alone, so this cache
    # ignores the labels.
    return NO_INSTRUCTIONS if _is_prose(text.string) else _parse_again(text)


def _parse(text: Text) -> Instructions:
    cutter = Cutter(text)
    return gather(list(read_text(cutter, text.string, sentences(text.string))))


_parse_again = lru_cache(maxsize=REMEMBERED_TEXTS)(_parse)
_parse_long_again = lru_cache(maxsize=REMEMBERED_LONG_TEXTS)(_parse)


def _has_no_instructions(string: str) -> bool:
    return not _parse(by_user(string))


_is_prose = lru_cache(maxsize=REMEMBERED_PROSE)(_has_no_instructions)
_is_long_prose = lru_cache(maxsize=REMEMBERED_LONG_PROSE)(_has_no_instructions)


@lru_cache(maxsize=REMEMBERED_MESSAGES)
def _parse_user(string: str) -> Instructions:
    return _parse(by_user(string))
