"""Text that knows who wrote it.

Owns provenance at the level of characters: every `Text` is a string cut into pieces, and each
piece says from which document (or from the user) its characters came. Slicing and joining keep
the pieces exact; an encoding keeps the text it was made from. Nothing here decides what is
allowed: that is the judge's work, and these labels are its evidence.
"""

import base64
import binascii
import codecs
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
"""A text in more pieces, or made of more, is too tangled to follow: only its authors are kept."""
MAX_AUTHORS: Final = 32
"""Of a tangled text. The rest are summed up in one, who is all that any of them was."""


class SourceKind(StrEnum):
    """Where a piece of text was met: what a deployed guardrail can see of its source."""

    __hash__ = str.__hash__  # labels are hashed on hot paths; Enum's own hash is a Python call

    USER = "user"
    WEB = "web"
    EMAIL = "email"
    FILE = "file"
    TOOL = "tool"


class Part(StrEnum):
    """Which part of its document a piece comes from. Only bodies are neutralised."""

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
    """False for everything that came from outside: web, mail, and files labelled so."""
    protected: bool = False
    """True for the canaries of protected files."""
    author: SourceKind | None = None
    """Who wrote it, where that is not where it lies: a download is a file by a web site."""

    @property
    def source(self) -> SourceKind:
        """Return by what kind of author it is. `kind` is how it was met, and is met again."""
        return self.author or self.kind


USER: Final = Origin(SourceKind.USER)
MACHINE: Final = Origin(SourceKind.TOOL)
"""Words of the simulated machine and the agent's own glue: they carry nothing."""


class Encoding(StrEnum):
    """A reversible spelling of a text."""

    BASE64 = "base64"
    HEX = "hex"
    URL = "url"
    REVERSE = "reverse"
    ROT13 = "rot13"
    SPACED = "spaced"
    UPPER = "upper"
    LOWER = "lower"
    DECODED = "decoded"
    """What came out of decoding a text that was not encoded here."""
    MIXED = "mixed"
    """Joined of more pieces than are followed."""


class Derived(Struct, frozen=True, tag=True, gc=False, eq=False):
    """The author of an encoded text: the text that went in."""

    encoding: Encoding
    source: "Text"
    length: int
    """Of the encoded text, so that a part of it can be told from the whole."""
    authors: tuple[Origin, ...]
    """Everyone who had a part in the source, so that nobody walks the whole derivation."""
    depth: int
    size: int
    """How many pieces the source and all it was made of have."""
    weight: int
    """How many characters they have."""
    identity: str
    """A digest of all that, so that comparing two derivations costs nothing either."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


class Piece(Struct, frozen=True, gc=False):
    """Characters `start` to `stop` of what `origin` wrote."""

    origin: Origin | Derived
    start: int
    stop: int


class Text(Struct, frozen=True, tag=True, gc=False):
    """A string and, in order, the pieces it is made of."""

    string: str
    pieces: tuple[Piece, ...]

    def __len__(self) -> int:
        return len(self.string)

    def __str__(self) -> str:
        return self.string

    def slice(self, start: int, stop: int) -> "Text":
        return slice_text(self, start, stop)

    def origins(self) -> tuple[Origin, ...]:
        """Return every origin in it, through all encodings, in order of first appearance."""
        return tuple(dict.fromkeys(_authors(self.pieces)))


EMPTY: Final = Text("", ())


def written_by(origin: Origin, string: str) -> Text:
    """Return a text that one origin wrote from its first character to its last."""
    return Text(string, (Piece(origin, 0, len(string)),)) if string else EMPTY


def by_user(string: str) -> Text:
    return written_by(USER, string)


def by_machine(string: str) -> Text:
    return written_by(MACHINE, string)


def lower(string: str) -> str:
    """Fold the case of ASCII alone: other tables of letters change with Python's version."""
    return string.lower() if string.isascii() else string.translate(_LOWER)


_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def has_lone_surrogate(string: str) -> bool:
    """Tell whether a string holds what no encoding can write down."""
    return not string.isascii() and any("\ud800" <= char <= "\udfff" for char in string)


def join(texts: Iterable[Text]) -> Text:
    """Concatenate, merging neighbours that continue each other in the same document."""
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
    return _tangled(whole, Encoding.MIXED, whole.string)


def _weight(pieces: Iterable[Piece]) -> int:
    return sum(piece.origin.weight for piece in pieces if isinstance(piece.origin, Derived))


def slice_text(text: Text, start: int, stop: int) -> Text:
    """Return characters [start, stop), each still labelled with its author."""
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
    """Return many slices of a text."""
    cutter = Cutter(text)
    return [cutter.cut(start, stop) for start, stop in spans]


class Cutter:
    """Cuts many slices out of one text, each at a cost of its own pieces and no others."""

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
    """Return the text in another spelling, still owing everything to its authors."""
    return _derive(text, encoding, _ENCODERS[encoding](text.string))


def decode(text: Text, encoding: Encoding) -> Text | None:
    """Undo an encoding; None when the text is not of that form.

    What was encoded in this world comes back with its own labels, not as a stranger's text.
    """
    # Whoever wrote an encoded text out may have ended the line.
    for exact in (text, slice_text(text, 0, len(text.string.rstrip("\n")))):
        source = _source(exact, encoding)
        if source is not None:
            return source
    if encoding in (Encoding.ROT13, Encoding.REVERSE):
        return encode(text, encoding)  # its own inverse, so it can be followed as well
    string = _decode_string(text.string, encoding)
    return None if string is None else _derive(text, Encoding.DECODED, string)


def _source(text: Text, encoding: Encoding) -> Text | None:
    """Return what a text was made of, if it is the whole of something encoded so."""
    if len(text.pieces) != 1 or not isinstance(text.pieces[0].origin, Derived):
        return None
    piece, origin = text.pieces[0], text.pieces[0].origin
    whole = piece.start == 0 and piece.stop == origin.length == len(text.string)
    if not whole or origin.encoding is not encoding:
        return None
    return origin.source if _ENCODERS[encoding](origin.source.string) == text.string else None


def neutralise(text: Text) -> Text:
    """Blank out the bodies that strangers wrote; lengths, titles and headers stay.

    The judge delivers documents this way to ask what would have happened without their words.
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
    """Label a transformed string with what it was made from.

    Beyond a fixed depth and size only the authors are kept, not which characters came through:
    a text that was wrapped over and over stays small, is still tainted, and proves no leak.
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
        return _tangled(source, encoding, string)
    return _labelled(string, encoding, source, (depth, size, weight))


def _tangled(source: Text, encoding: Encoding, string: str) -> Text:
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
