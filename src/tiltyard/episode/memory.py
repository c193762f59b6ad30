"""Measure how much memory the events of an episode take.

The figure depends on the events alone, so it is the same on every machine. It counts texts, which
an attack can make large: arguments, outputs, and what a call wrote, sent or posted.
"""

from collections.abc import Iterable
from typing import Final

from tiltyard.contracts.trace import Event
from tiltyard.world.results import ToolCall
from tiltyard.world.state import Deleted, Effect, Mailed, Posted
from tiltyard.world.text import Text

_EVENT_BYTES: Final = 500
_PIECE_BYTES: Final = 64
_WIDE_CHAR_BYTES: Final = 4
"""Python stores every character of a text in the size of the widest one."""


def bytes_of(events: Iterable[Event]) -> int:
    """Return about how many bytes these events take."""
    # An attack asks for this once a message, so it makes no iterators for the usual event.
    total = 0
    for event in events:
        total += _EVENT_BYTES + _size(event.result.output) + _size_of_args(event.call)
        if event.ran is not None:
            total += _size_of_args(event.ran)
        for effect in event.effects:
            total += sum(map(_size, _texts(effect)))
    return total


def _size_of_args(call: ToolCall) -> int:
    total = 0
    for value in call.args.values():
        if isinstance(value, Text):
            total += _size(value)
    return total


def _texts(effect: Effect) -> tuple[Text, ...]:
    if isinstance(effect, Posted):
        return effect.url, effect.data
    if isinstance(effect, Mailed):
        return effect.mail.to, effect.mail.subject, effect.mail.body
    return () if isinstance(effect, Deleted) else (effect.after.content,)


def _size(text: Text) -> int:
    string = text.string
    size = len(string) if string.isascii() else len(string) * _WIDE_CHAR_BYTES
    return size + len(text.pieces) * _PIECE_BYTES
