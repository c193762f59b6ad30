"""What others ask for: the orders in texts by people whom the user did not name."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from tiltyard.guardrails.declared.lexicon import actions_ordered, stems_of, things_in
from tiltyard.guardrails.declared.origins import Piece
from tiltyard.guardrails.declared.request import SENTENCE, Meaning
from tiltyard.guardrails.declared.words import MAX_KEPT_CHARS
from tiltyard.inference import Effect

_MIN_WORDS: Final = 3
"""A shorter text asks for nothing."""
_MIN_TITLE: Final = 2
"""A shorter name, such as a category, may stand in any text."""
_MILD: Final = frozenset({Effect.WRITE, Effect.UNKNOWN})


class _Order(Struct, frozen=True, gc=False):
    """What one text asks for."""

    asked: tuple[tuple[frozenset[str], frozenset[int]], ...]
    """For each sentence the actions, and the things that it speaks of."""
    text: str
    embedded: bool
    record: int

    @property
    def stems(self) -> frozenset[str]:
        return stems_of(self.text)


class Title(Struct, frozen=True, gc=False):
    """The stems of a record's name."""

    stems: frozenset[str]
    record: int


class Voices:
    """The orders that strangers gave so far."""

    def __init__(self) -> None:
        self._orders: list[_Order] = []
        self._heard = 0

    def hear(self, pieces: list[Piece]) -> None:
        """Listen to the pieces that are new."""
        for piece in pieces[self._heard :]:
            if piece.by in ("person", "unknown") and piece.text.count(" ") >= _MIN_WORDS - 1:
                self._orders += _orders_in(piece)
        self._heard = len(pieces)

    def ask_for(self, tool: Meaning) -> bool:
        """Return whether somebody may have asked for a call of a tool.

        What stands between tags in a text can ask for anything. Other texts ask for a mild effect
        only if they speak of the things that the tool is for.
        """
        mild = tool.inferred.effect in _MILD
        return any(
            order.embedded
            or any(
                actions & tool.actions and (not mild or things & tool.things)
                for actions, things in order.asked
            )
            for order in self._orders
        )

    def want(self, actions: frozenset[str], records: set[int]) -> bool:
        """Return whether a text asks for one of some actions, or one of some records for any."""
        return any(
            order.record in records or any(asked & actions for asked, _ in order.asked)
            for order in self._orders
        )

    def pick(self, title: Title, actions: frozenset[str]) -> bool:
        """Return whether a text that asks for one of some actions names a record.

        Texts of the record itself speak of it anyway.
        """
        words = title.stems
        return len(words) >= _MIN_TITLE and any(
            (order.embedded or order.record != title.record)
            and any(asked & actions for asked, _ in order.asked)
            and 2 * len(order.stems & words) > len(words)
            for order in self._orders
        )


def _orders_in(piece: Piece) -> Iterable[_Order]:
    text = piece.text
    asked = _asked_kept(text) if len(text) <= MAX_KEPT_CHARS else _asked_in(text)
    if asked or piece.embedded:
        yield _Order(asked, text, piece.embedded, piece.record)


def _asked_in(text: str) -> tuple[tuple[frozenset[str], frozenset[int]], ...]:
    read = [(actions_ordered(one), one) for one in SENTENCE.split(text)]
    return tuple((actions, things_in(stems_of(one))) for actions, one in read if actions)


_asked_kept = lru_cache(maxsize=4_096)(_asked_in)
