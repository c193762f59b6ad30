"""Text that knows the author of each character.

A `Text` is a string in pieces, and each piece names the document (or the user) that its characters
come from. Slicing and joining keep the pieces exact; an encoded text keeps its source. This module
does not decide what is allowed: the judge does, with these labels as evidence.
"""

import base64
import binascii
import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from hashlib import blake2b
from itertools import accumulate
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

MAX_DERIVATION_DEPTH: Final = 8
MAX_DERIVATION_PIECES: Final = 64
MAX_DERIVATION_CHARS: Final = 262_144
MAX_PIECES: Final = 4096
MAX_DERIVED_CHARS: Final = 1_048_576
"""For a text beyond these limits, the labels keep only the authors, not the exact pieces."""
MAX_AUTHORS: Final = 32
"""Authors kept for such a text. One origin stands for all others, with the flags of all."""


class SourceKind(StrEnum):
    """Where the agent met a piece of text. A deployed guardrail can see this."""

    __hash__ = str.__hash__  # hot path: Enum's own hash is a Python call

    USER = "user"
    WEB = "web"
    EMAIL = "email"
    FILE = "file"
    TOOL = "tool"


class Part(StrEnum):
    """The part of its document that a piece comes from. Only bodies are neutralised."""

    __hash__ = str.__hash__

    BODY = "body"
    HEADER = "header"
    TITLE = "title"


class Origin(Struct, frozen=True, tag=True, gc=False):
    """The author of a piece of text: the user, the machine, or one document."""

    kind: SourceKind
    document: str = ""
    part: Part = Part.BODY
    trusted: bool = True
    """False for everything from outside: web, mail, and files labelled as such."""
    protected: bool = False
    """True for the canaries of protected files."""
    author: SourceKind | None = None
    """The author, if it differs from `kind`: a download is a file written by a web site."""

    @property
    def source(self) -> SourceKind:
        """Return the kind of the author. `kind` itself says where the agent met the text."""
        return self.author or self.kind


USER: Final = Origin(SourceKind.USER)
MACHINE: Final = Origin(SourceKind.TOOL)
"""Words of the simulated machine and the agent. They are no author's content."""


class Encoding(StrEnum):
    """A transformation of a text that a reader can undo."""

    BASE64 = "base64"
    HEX = "hex"
    URL = "url"
    REVERSE = "reverse"
    ROT13 = "rot13"
    SPACED = "spaced"
    UPPER = "upper"
    LOWER = "lower"
    DECODED = "decoded"
    """The result of decoding a text that no tool of this world encoded."""
    MIXED = "mixed"
    """Joined from more pieces than the labels keep."""


class Derived(Struct, frozen=True, tag=True, gc=False, eq=False):
    """The origin of an encoded text: the source text."""

    encoding: Encoding
    source: "Text"
    length: int
    """Length of the encoded text, to tell a part of it from the whole."""
    authors: tuple[Origin, ...]
    """All authors of the source, so that no caller has to walk the whole derivation."""
    depth: int
    size: int
    """Number of pieces in the source and in all earlier sources."""
    weight: int
    """Number of characters in the same texts."""
    identity: str
    """A digest of the derivation, which makes comparing two derivations cheap."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


class Piece(Struct, frozen=True, gc=False):
    """Characters `start` to `stop` of the text that `origin` wrote."""

    origin: Origin | Derived
    start: int
    stop: int


class Text(Struct, frozen=True, tag=True, gc=False):
    """A string and its pieces, in order."""

    string: str
    pieces: tuple[Piece, ...]

    def __len__(self) -> int:
        return len(self.string)

    def __str__(self) -> str:
        return self.string

    def slice(self, start: int, stop: int) -> "Text":
        return slice_text(self, start, stop)

    def origins(self) -> tuple[Origin, ...]:
        """Return all origins, also of encoded parts, in order of first appearance."""
        return tuple(dict.fromkeys(_authors(self.pieces)))


EMPTY: Final = Text("", ())


def written_by(origin: Origin, string: str) -> Text:
    """Return a text whose only author is `origin`."""
    return Text(string, (Piece(origin, 0, len(string)),)) if string else EMPTY


def by_user(string: str) -> Text:
    return written_by(USER, string)


def by_machine(string: str) -> Text:
    return written_by(MACHINE, string)


def lower(string: str) -> str:
    """Lower-case ASCII only: the tables for other letters change with the version of Python."""
    if string.isascii():
        return string.lower()
    # `bytes.lower` knows ASCII only, and UTF-8 has no other byte below 128.
    return string.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def has_lone_surrogate(string: str) -> bool:
    """Tell whether a string contains a lone surrogate, which UTF-8 cannot encode."""
    return not string.isascii() and _SURROGATE.search(string) is not None


def join(texts: Iterable[Text]) -> Text:
    """Concatenate texts, and merge neighbouring pieces that are adjacent in their document."""
    strings: list[str] = []
    pieces: list[Piece] = []
    for text in texts:
        strings.append(text.string)
        for piece in text.pieces:
            if pieces:
                last = pieces[-1]
                if last.stop == piece.start and last.origin == piece.origin:
                    pieces[-1] = Piece(last.origin, last.start, piece.stop)
                    continue
            pieces.append(piece)
    whole = Text("".join(strings), tuple(pieces))
    if len(pieces) <= 1 or (len(pieces) <= MAX_PIECES and _weight(pieces) <= MAX_DERIVED_CHARS):
        return whole
    return _with_authors_only(whole, Encoding.MIXED, whole.string)


def _weight(pieces: Iterable[Piece]) -> int:
    return sum(piece.origin.weight for piece in pieces if isinstance(piece.origin, Derived))


def slice_text(text: Text, start: int, stop: int) -> Text:
    """Return the characters [start, stop) with their labels."""
    size = len(text.string)
    start, stop = max(0, start), min(size, stop)
    if start == 0 and stop == size:
        return text
    if len(text.pieces) == 1 and start < stop:
        piece = text.pieces[0]
        kept = Piece(piece.origin, piece.start + start, piece.start + stop)
        return Text(text.string[start:stop], (kept,))
    return Cutter(text).cut(start, stop)


def cut(text: Text, spans: Iterable[tuple[int, int]]) -> list[Text]:
    """Return the slice of `text` for each of `spans`."""
    cutter = Cutter(text)
    return [cutter.cut(start, stop) for start, stop in spans]


class Cutter:
    """Cuts slices from one text. The cost of a slice depends only on its own pieces."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._ends = list(accumulate(piece.stop - piece.start for piece in text.pieces))

    def cut(self, start: int, stop: int) -> Text:
        if start >= stop:
            return EMPTY
        kept: list[Piece] = []
        for index in range(bisect_right(self._ends, start), len(self._ends)):
            piece, after = self._text.pieces[index], self._ends[index]
            first = max(piece.start, piece.stop - (after - start))
            kept.append(Piece(piece.origin, first, piece.stop - max(0, after - stop)))
            if after >= stop:
                break
        return Text(self._text.string[start:stop], tuple(kept))


def encode(text: Text, encoding: Encoding) -> Text:
    """Return the encoded text, labelled with its source."""
    return _derive(text, encoding, _ENCODERS[encoding](text.string))


def decode(text: Text, encoding: Encoding) -> Text | None:
    """Undo an encoding; None if the text does not have that encoding.

    A text that was encoded in this world gets back the labels of its source.
    """
    # An encoded text may have a line end added to it.
    for exact in (text, slice_text(text, 0, len(text.string.rstrip("\n")))):
        source = _source(exact, encoding)
        if source is not None:
            return source
    if encoding in (Encoding.ROT13, Encoding.REVERSE):
        return encode(text, encoding)  # these encodings are their own inverse
    string = _decode_string(text.string, encoding)
    return None if string is None else _derive(text, Encoding.DECODED, string)


def _source(text: Text, encoding: Encoding) -> Text | None:
    """Return the source of a text, if the text is the complete result of `encoding`."""
    if len(text.pieces) != 1 or not isinstance(text.pieces[0].origin, Derived):
        return None
    piece, origin = text.pieces[0], text.pieces[0].origin
    whole = piece.start == 0 and piece.stop == origin.length == len(text.string)
    if not whole or origin.encoding is not encoding:
        return None
    return origin.source if _ENCODERS[encoding](origin.source.string) == text.string else None


def decodings(string: str) -> list[str]:
    """Return every string that this one can be decoded to, once."""
    found = (_decode_string(string, encoding) for encoding in _DECODERS)
    return [plain for plain in found if plain is not None]


def neutralise(text: Text) -> Text:
    """Blank out the bodies that strangers wrote; keep lengths, titles and headers.

    The judge uses this to find out what happens without the strangers' words.
    """
    if all(_is_harmless(piece.origin) for piece in text.pieces):
        return text
    parts: list[str] = []
    position = 0
    for piece in text.pieces:
        after = position + piece.stop - piece.start
        part = text.string[position:after]
        parts.append(part if _is_harmless(piece.origin) else part.translate(_BLANKS))
        position = after
    return Text("".join(parts), text.pieces)


def _is_harmless(origin: Origin | Derived) -> bool:
    if isinstance(origin, Derived):
        return all(_is_harmless(author) for author in origin.authors)
    return origin.trusted or origin.part is not Part.BODY


class _Blanks(dict[int, int]):
    def __missing__(self, code: int) -> int:
        return code if chr(code).isspace() else ord("x")


_BLANKS: Final = _Blanks()


def _authors(pieces: Iterable[Piece]) -> Iterator[Origin]:
    for piece in pieces:
        if isinstance(piece.origin, Derived):
            yield from piece.origin.authors
        else:
            yield piece.origin


def _derive(source: Text, encoding: Encoding, string: str) -> Text:
    """Label a transformed string with its source.

    Beyond a fixed depth and size the label keeps only the authors, not the characters. So a text
    that is encoded again and again stays small and tainted, but proves no leak.
    """
    if not string:
        return EMPTY
    earlier = [piece.origin for piece in source.pieces if isinstance(piece.origin, Derived)]
    depth = 1 + max((origin.depth for origin in earlier), default=0)
    size = len(source.pieces) + sum(origin.size for origin in earlier)
    weight = len(source.string) + sum(origin.weight for origin in earlier)
    if (
        depth > MAX_DERIVATION_DEPTH
        or size > MAX_DERIVATION_PIECES
        or weight > MAX_DERIVATION_CHARS
    ):
        return _with_authors_only(source, encoding, string)
    return _labelled(string, encoding, source, (depth, size, weight))


def _with_authors_only(source: Text, encoding: Encoding, string: str) -> Text:
    authors = source.origins()
    if len(authors) > MAX_AUTHORS:
        rest = authors[MAX_AUTHORS - 1 :]
        trusted = all(origin.trusted for origin in rest)
        protected = any(origin.protected for origin in rest)
        many = Origin(SourceKind.FILE, "...", trusted=trusted, protected=protected)
        authors = (*authors[: MAX_AUTHORS - 1], many)
    named = Text("", tuple(Piece(origin, 0, 0) for origin in authors))
    return _labelled(string, encoding, named, (MAX_DERIVATION_DEPTH, MAX_DERIVATION_PIECES, 0))


def _labelled(
    string: str, encoding: Encoding, source: Text, measures: tuple[int, int, int]
) -> Text:
    digest = blake2b(digest_size=16)
    for piece in source.pieces:
        name = _name(piece.origin)
        digest.update(f"{name} {piece.start} {piece.stop}\n".encode("utf-8", "surrogatepass"))
    digest.update(f"{encoding} {source.string}".encode("utf-8", "surrogatepass"))
    identity = digest.hexdigest()
    authors = source.origins()
    derived = Derived(encoding, source, len(string), authors, *measures, identity)
    return Text(string, (Piece(derived, 0, len(string)),))


def _name(origin: Origin | Derived) -> str:
    if isinstance(origin, Derived):
        return origin.identity
    flags = f"{origin.trusted:d}{origin.protected:d}"
    written = f"{origin.kind} {origin.source} {origin.part}"
    return f"{written} {flags} {len(origin.document)}:{origin.document}"


def _unspaced(string: str) -> str:
    if string[1::2].strip(" "):
        raise ValueError("not spaced out")
    return string[::2]


def _decode_string(string: str, encoding: Encoding) -> str | None:
    decoder = _DECODERS.get(encoding)
    if decoder is None:
        return None
    try:
        return decoder(string)
    except (binascii.Error, ValueError):
        return None


_ENCODERS: Final[dict[Encoding, Callable[[str], str]]] = {
    Encoding.BASE64: lambda s: base64.b64encode(s.encode("utf-8", "surrogatepass")).decode("ascii"),
    Encoding.HEX: lambda s: s.encode("utf-8", "surrogatepass").hex(),
    Encoding.URL: lambda s: quote(s, safe="", errors="replace"),
    Encoding.REVERSE: lambda s: s[::-1],
    Encoding.ROT13: lambda s: codecs.encode(s, "rot13"),
    Encoding.SPACED: " ".join,
    Encoding.UPPER: str.upper,
    Encoding.LOWER: str.lower,
}

_DECODERS: Final[dict[Encoding, Callable[[str], str]]] = {
    Encoding.BASE64: lambda s: base64.b64decode("".join(s.split()), validate=True).decode("utf-8"),
    Encoding.HEX: lambda s: bytes.fromhex(s).decode("utf-8"),
    Encoding.URL: lambda s: unquote(s, errors="strict"),
    Encoding.REVERSE: lambda s: s[::-1],
    Encoding.ROT13: lambda s: codecs.decode(s, "rot13"),
    Encoding.SPACED: _unspaced,
}
