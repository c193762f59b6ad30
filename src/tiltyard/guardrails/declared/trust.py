"""Who answers for a value: the user, the owner's records, or somebody else."""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from tiltyard.contracts.policy import Policy
from tiltyard.guardrails.declared.lexicon import begins_with_order, stems_of, subjects_of
from tiltyard.guardrails.declared.origins import Origins, Piece
from tiltyard.guardrails.declared.request import Request
from tiltyard.guardrails.declared.voices import Title
from tiltyard.guardrails.declared.words import plain

Trust = Literal["said", "own", "asked of", "strange", "new"]
"""Who answers for a value: the user said it; the owner or the system wrote it; only others wrote
it, and the user named one of them; only others wrote it, and the user named none; nobody did."""

MIN_TOLD: Final = 4
"""A shorter value proves little: it may stand in any text."""
_WEB: Final = ("http://", "https://", "www.")
_MARK: Final = re.compile(r"^\s*(?:https?://)?(?:www\.)?", re.IGNORECASE)


class Judge:
    """Says who answers for the values of one call."""

    def __init__(self, request: Request, origins: Origins, policy: Policy) -> None:
        self._request, self._origins, self._policy = request, origins, policy

    def trust(self, value: Any) -> Trust:
        """Return who answers for a value."""
        low = plain(str(value))
        owner = (*self._policy.owner_names, *self._policy.owner_addresses)
        if self._request.says(value) or any(low == plain(own) for own in owner):
            return "said"
        pieces = self._origins.holding(value)
        if not pieces and is_web(value):
            base = bare_address(value.partition("?")[0])
            if self._request.says(base):
                return "said"
            pieces = self._origins.holding(base)
        if not pieces:
            # Later results were not kept, and anybody may have written them.
            return "strange" if self._origins.is_full else "new"
        return self._judge(low, pieces)

    def _judge(self, low: str, pieces: list[Piece]) -> Trust:
        others = [
            piece
            for piece in pieces
            if self._is_outside(piece) or (_is_order(piece) and plain(piece.text) != low)
        ]
        if not others:
            return "own"
        named = [piece for piece in others if self._is_named(piece)]
        if any(plain(piece.text) == low for piece in named):
            return "own"
        if named or any(map(self._is_referred, others)):
            return "asked of"
        if _is_opaque(low) and not self._is_chosen(low, pieces):
            return "strange"
        return _passing_mention(low, pieces, others)

    def titles_of(self, value: Any) -> list[Title]:
        """Return the names of the records of which a value is a field.

        There are none if the user's words speak of one of these names.
        """
        low = plain(str(value))
        found: list[Title] = []
        for number in sorted(self._records_with(low, self._origins.holding(value))):
            found += [
                Title(stems_of(other.text), number)
                for other in self._origins.record(number)
                if other.is_field and is_name(other.text) and plain(other.text) != low
            ]
        said = self._request.stems
        return [] if any(title.stems & said for title in found) else found

    def _records_with(self, low: str, pieces: Iterable[Piece]) -> set[int]:
        return {piece.record for piece in pieces if plain(piece.text) == low}

    def _is_chosen(self, low: str, pieces: list[Piece]) -> bool:
        """Return whether the user's words name the record of which a value is a field."""
        return any(
            other.is_field and is_name(other.text) and self._request.says(other.text)
            for number in self._records_with(low, pieces)
            for other in self._origins.record(number)
        )

    def _is_outside(self, piece: Piece) -> bool:
        """Return whether people whom nobody vouches for wrote a piece."""
        policy = self._policy
        if piece.by in ("owner", "system"):
            return False
        if piece.author and (
            piece.author in policy.trusted_sources
            or piece.author in policy.owner_addresses
            or piece.author.rpartition("@")[2] in policy.internal_domains
        ):
            return False
        return piece.by == "person" or piece.embedded or not piece.is_field

    def _is_named(self, piece: Piece) -> bool:
        """Return whether the user named the author of a piece, or the record that it is part of."""
        if piece.by_named_author or (piece.read_by_name and piece.by == "unknown"):
            return True
        if piece.author and self._request.empowers_author(piece.author):
            return True
        record = self._origins.record(piece.record)
        # With several authors in a record, its title tells nothing about one of them.
        alone = len({other.author for other in record if other.by == "person"}) <= 1
        return any(
            other.is_field and is_name(other.text) and self._request.empowers(other.text)
            for other in record
            if piece.by == "unknown"
            or other.author == piece.author
            or (alone and other.by == "system")
        )

    def _is_referred(self, piece: Piece) -> bool:
        """Return whether the user speaks of texts of this kind, and names none of them."""
        if piece.by != "unknown" or piece.embedded:
            return False
        kinds = piece.about & self._request.sources
        if not kinds or not self._is_on_topic(piece):
            return False
        return not any(
            other.about & kinds and self._is_outside(other) and self._is_named(other)
            for other in self._origins.pieces
        )

    def _is_on_topic(self, piece: Piece) -> bool:
        """Return whether the record of a piece and the user speak of the same matter."""
        return any(
            subjects_of(other.text) & self._request.subjects
            for other in self._origins.record(piece.record)
        )


def _is_order(piece: Piece) -> bool:
    """Return whether a short text tells somebody to do something, unlike the value of a field."""
    return piece.by == "unknown" and begins_with_order(piece.text)


def _passing_mention(low: str, pieces: list[Piece], others: list[Piece]) -> Trust:
    """Judge a value that stands in texts by people whom the user did not name.

    A name or a number that is also a field of a record may stand in a text by chance. With known
    authors, or between tags, the mention weighs more.
    """
    if len(others) == len(pieces):
        return "strange"
    by_chance = not any(piece.by == "person" or piece.embedded for piece in others)
    if len(low) < MIN_TOLD:
        return "own" if by_chance else "asked of"
    return "asked of" if by_chance else "strange"


def _is_opaque(low: str) -> bool:
    """Return whether a value is an identifier that nobody mentions by chance."""
    return (
        len(low) >= MIN_TOLD
        and " " not in low
        and any(map(str.isdigit, low))
        and any(map(str.isalpha, low))
    )


def is_web(value: Any) -> bool:
    """Return whether a value is an address of the web, in any spelling that a client accepts."""
    return isinstance(value, str) and value.lstrip().lower().startswith(_WEB)


def bare_address(url: str) -> str:
    """Return an address without what people leave out when they write one."""
    return _MARK.sub("", url).rstrip("/") or url


def is_name(text: str) -> bool:
    """Return whether a short value looks like a name or a title rather than a word or a number."""
    words = text.split()
    return (
        len(text) >= MIN_TOLD and (len(words) > 1 or text[:1].isupper()) and words[0][:1].isalpha()
    )
