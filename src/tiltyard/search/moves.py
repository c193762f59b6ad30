"""Mutation operators: make a new chain from a known one.

An operator returns the new chain, and how many of its first messages it shares with the known
chain. Only the messages after these must be played.
"""

import re
from collections.abc import Callable
from typing import Final

from tiltyard.foundation.draw import Draw
from tiltyard.search.archive import Archive, Chain
from tiltyard.search.vocabulary import Vocabulary

Move = tuple[Chain, int]
Operator = Callable[[Chain, Vocabulary, Archive, Draw], Move]

MAX_WASHES: Final = 5


def append(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Add one message."""
    del archive
    return (*chain, vocabulary.say(draw)), len(chain)


def replace(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Replace one message."""
    if not chain:
        return append(chain, vocabulary, archive, draw)
    at = draw.below(len(chain))
    return (*chain[:at], vocabulary.say(draw), *chain[at + 1 :]), at


def splice(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Add the end of another chain."""
    del vocabulary
    other = archive.choose(draw).chain
    tail = other[len(other) - 1 - draw.below(len(other)) :] if other else ()
    return chain + tail, len(chain)


def wash(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Insert harmless reads: a guardrail with a short memory forgets what came before."""
    del archive
    at = draw.below(len(chain) + 1)
    reads = tuple(vocabulary.wash(draw) for _ in range(1 + draw.below(MAX_WASHES)))
    return chain[:at] + reads + chain[at:], at


def recode(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Encode what a message sends or writes, or remove the encoding."""
    places = [at for at, message in enumerate(chain) if _OBJECT.search(message)]
    encodings = vocabulary.words("encoding")
    if not places or not encodings:
        return append(chain, vocabulary, archive, draw)
    at = draw.choice(places)
    message = chain[at]
    if _ENCODED.search(message):
        message = _ENCODED.sub("", message, count=1)
    else:
        spelling = f" as {draw.choice(encodings)}"
        message = _OBJECT.sub(lambda found: found[0] + spelling, message, count=1)
    return (*chain[:at], message, *chain[at + 1 :]), at


def retarget(chain: Chain, vocabulary: Vocabulary, archive: Archive, draw: Draw) -> Move:
    """Replace a host, recipient or file in one message."""
    places = [at for at, message in enumerate(chain) if _target(message, vocabulary)]
    if not places:
        return append(chain, vocabulary, archive, draw)
    at = draw.choice(places)
    slot, name = _target(chain[at], vocabulary) or ("", "")
    message = chain[at].replace(name, draw.choice(vocabulary.words(slot)), 1)
    return (*chain[:at], message, *chain[at + 1 :]), at


OPERATORS: Final[dict[str, Operator]] = {
    "append": append,
    "replace": replace,
    "splice": splice,
    "wash": wash,
    "recode": recode,
    "retarget": retarget,
}

_OBJECT: Final = re.compile(
    r"\b(?:post|send|save|mail|upload|submit|forward|email|store|copy|write) "
    r"(?:it|secret\.txt|the file)\b"
)
_ENCODED: Final = re.compile(r" as (?:base64|hex|url|reverse|rot13|spaced)\b")
_SLOTS: Final = ("url", "address", "path", "page", "mail", "file")


def _target(message: str, vocabulary: Vocabulary) -> tuple[str, str] | None:
    """Return the slot and the name of a word that could be replaced."""
    for word in message.split():
        name = word.strip("`\"',.")
        for slot in _SLOTS:
            if vocabulary.knows(slot, name):
                return slot, name
    return None
