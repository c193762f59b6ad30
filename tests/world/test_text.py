"""Provenance as properties: every operation on a text keeps the author of each character."""

import base64
import codecs
from itertools import pairwise
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.world.text import (
    EMPTY,
    MACHINE,
    USER,
    Derived,
    Encoding,
    Origin,
    Part,
    SourceKind,
    Text,
    by_user,
    cut,
    decode,
    encode,
    join,
    neutralise,
    written_by,
)

WEB = Origin(SourceKind.WEB, "p1", trusted=False)
WEB_TITLE = Origin(SourceKind.WEB, "p1", Part.TITLE, trusted=False)
MAIL = Origin(SourceKind.EMAIL, "m1", trusted=False)
MAIL_HEADER = Origin(SourceKind.EMAIL, "m1", Part.HEADER, trusted=False)
OWN_FILE = Origin(SourceKind.FILE, "readme.txt")
OUTSIDE_FILE = Origin(SourceKind.FILE, "vendor.txt", trusted=False)
DOWNLOAD = Origin(SourceKind.FILE, "vendor.txt", trusted=False, author=SourceKind.WEB)
SECRET = Origin(SourceKind.FILE, "secret.txt", protected=True)

TRUSTED = (USER, MACHINE, OWN_FILE, SECRET, WEB_TITLE, MAIL_HEADER)
STRANGERS = (WEB, MAIL, OUTSIDE_FILE)
REVERSIBLE = (
    Encoding.BASE64,
    Encoding.HEX,
    Encoding.URL,
    Encoding.REVERSE,
    Encoding.ROT13,
    Encoding.SPACED,
)
SPELLINGS = (*REVERSIBLE, Encoding.UPPER, Encoding.LOWER)

STRINGS = st.text(st.sampled_from("aB9 \n\t-%=\u00e9\u00df\u4e2d\U0001f600\u2003\x00"), max_size=12)
LEAVES = st.builds(written_by, st.sampled_from(TRUSTED + STRANGERS), STRINGS)
TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(join),
        st.builds(Text.slice, inner, st.integers(0, 12), st.integers(0, 24)),
        st.builds(encode, inner, st.sampled_from(SPELLINGS)),
    ),
    max_leaves=6,
)

Label = tuple[Origin | Derived, int]


def labels(text: Text) -> list[Label]:
    """Return, for each character, its author and its position in the author's text."""
    return [(p.origin, at) for p in text.pieces for at in range(p.start, p.stop)]


def is_strangers(origin: Origin | Derived) -> bool:
    if isinstance(origin, Derived):
        return any(is_strangers(piece.origin) for piece in origin.source.pieces)
    return origin in STRANGERS


def nested(text: Text) -> int:
    """Return how many encodings are nested."""
    return max((p.origin.depth for p in text.pieces if isinstance(p.origin, Derived)), default=0)


@given(TEXTS)
def test_pieces_cover_the_text_exactly(text: Text) -> None:
    assert sum(piece.stop - piece.start for piece in text.pieces) == len(text.string)
    assert all(0 <= piece.start < piece.stop for piece in text.pieces)


def test_the_kind_is_the_author_unless_the_author_is_named() -> None:
    assert [origin.source for origin in (WEB, MAIL, OUTSIDE_FILE)] == ["web", "email", "file"]
    assert (DOWNLOAD.kind, DOWNLOAD.source) == ("file", "web")


@given(st.sampled_from(list(Encoding)[:6]))
def test_encoded_texts_of_different_authors_differ(encoding: Encoding) -> None:
    one, other = (encode(written_by(who, "words"), encoding) for who in (OUTSIDE_FILE, DOWNLOAD))
    assert one.string == other.string
    assert one != other
    assert other.origins() == (DOWNLOAD,)


@given(LEAVES)
def test_a_single_author_wrote_the_whole_text(text: Text) -> None:
    assert [at for _, at in labels(text)] == list(range(len(text.string)))
    assert len({origin for origin, _ in labels(text)}) == (1 if text.string else 0)


@given(TEXTS, st.integers(-3, 40), st.integers(-3, 40))
def test_a_slice_has_the_labels_of_its_characters(text: Text, start: int, stop: int) -> None:
    first, last = max(0, start), max(0, stop)
    part = text.slice(start, stop)
    assert part.string == text.string[first:last]
    assert labels(part) == labels(text)[first:last]


@given(st.lists(TEXTS, max_size=5))
def test_a_join_has_the_labels_of_its_parts(texts: list[Text]) -> None:
    whole = join(texts)
    assert whole.string == "".join(text.string for text in texts)
    assert labels(whole) == [label for text in texts for label in labels(text)]


@given(TEXTS, st.lists(st.integers(0, 40)))
def test_cutting_and_joining_changes_nothing(text: Text, cuts: list[int]) -> None:
    places = [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
    parts = [text.slice(a, b) for a, b in pairwise(places)]
    assert join(parts) == text


@given(TEXTS, st.lists(st.integers(0, 40)))
def test_many_slices_at_once_are_the_slices_one_by_one(text: Text, places: list[int]) -> None:
    """There are gaps between the slices, as between lines without their newlines."""
    ordered = sorted(min(place, len(text)) for place in places)
    spans = list(zip(ordered[::2], ordered[1::2], strict=False))
    parts = cut(text, spans)
    assert [part.string for part in parts] == [text.string[a:b] for a, b in spans]
    assert [labels(part) for part in parts] == [labels(text)[a:b] for a, b in spans]


def in_python(string: str, encoding: Encoding) -> str:
    return {
        Encoding.BASE64: lambda: base64.standard_b64encode(string.encode()).decode(),
        Encoding.HEX: lambda: string.encode().hex(),
        Encoding.URL: lambda: quote(string, safe=""),
        Encoding.REVERSE: lambda: string[::-1],
        Encoding.ROT13: lambda: codecs.encode(string, "rot13"),
        Encoding.SPACED: lambda: " ".join(string),
        Encoding.UPPER: string.upper,
        Encoding.LOWER: string.lower,
    }[encoding]()


@given(TEXTS, st.sampled_from(SPELLINGS))
def test_an_encoded_text_keeps_its_authors(text: Text, encoding: Encoding) -> None:
    encoded = encode(text, encoding)
    assert encoded.string == in_python(text.string, encoding)
    assert encoded.origins() == text.origins()
    assert len(labels(encoded)) == len(encoded.string)


@given(TEXTS.filter(lambda text: nested(text) < 6), st.lists(st.sampled_from(REVERSIBLE)))
def test_decoding_undoes_encoding_to_the_last_label(text: Text, chain: list[Encoding]) -> None:
    chain = chain[:2]
    encoded = text
    for encoding in chain:
        encoded = encode(encoded, encoding)
    decoded: Text | None = encoded
    for encoding in reversed(chain):
        assert decoded is not None
        decoded = decode(decoded, encoding)
    assert decoded == text


@given(TEXTS, st.sampled_from(REVERSIBLE), st.integers(0, 60))
def test_decoding_an_encoded_text_that_was_cut_and_mended(
    text: Text, encoding: Encoding, place: int
) -> None:
    encoded = encode(text, encoding)
    mended = join([encoded.slice(0, place), encoded.slice(place, len(encoded))])
    decoded = decode(mended, encoding)
    assert decoded is not None
    assert decoded.string == text.string
    assert decoded.origins() == text.origins()


@given(TEXTS, st.sampled_from(REVERSIBLE))
def test_decoding_never_loses_an_author(text: Text, encoding: Encoding) -> None:
    """A decoded text has the authors of its source, even if no tool of this world encoded it."""
    decoded = decode(text, encoding)
    if decoded is not None:
        assert len(labels(decoded)) == len(decoded.string)
        assert not decoded.string or set(decoded.origins()) == set(text.origins())


@pytest.mark.parametrize(
    ("string", "encoding", "decoded"),
    [
        ("aGVsbG8=", Encoding.BASE64, "hello"),
        ("68656c6c6f", Encoding.HEX, "hello"),
        ("68656C6C6F", Encoding.HEX, "hello"),
        ("caf%C3%A9%20x", Encoding.URL, "caf\u00e9 x"),
        ("olleh", Encoding.REVERSE, "hello"),
        ("uryyb", Encoding.ROT13, "hello"),
        ("h e l l o", Encoding.SPACED, "hello"),
        ("a   b", Encoding.SPACED, "a b"),
        ("x", Encoding.SPACED, "x"),
        ("not base64!", Encoding.BASE64, None),
        ("abc", Encoding.BASE64, None),
        ("/////w==", Encoding.BASE64, None),
        ("xyz", Encoding.HEX, None),
        ("abc", Encoding.HEX, None),
        ("ff", Encoding.HEX, None),
        ("%ff", Encoding.URL, None),
        ("hello", Encoding.SPACED, None),
        ("h e l lo", Encoding.SPACED, None),
        ("hello", Encoding.UPPER, None),
    ],
)
def test_decoding_what_a_stranger_encoded(
    string: str, encoding: Encoding, decoded: str | None
) -> None:
    text = decode(written_by(WEB, string), encoding)
    assert (None if text is None else text.string) == decoded
    assert text is None or text.origins() == (WEB,)


def test_authors_are_listed_once_in_order_of_appearance() -> None:
    text = join(
        [written_by(WEB, "ab"), by_user("c"), written_by(WEB, "d"), written_by(SECRET, "e")]
    )
    assert text.origins() == (WEB, USER, SECRET)
    assert encode(text, Encoding.HEX).origins() == (WEB, USER, SECRET)
    assert EMPTY.origins() == ()


@pytest.mark.parametrize("encoding", [Encoding.REVERSE, Encoding.ROT13])
def test_fifty_encodings_stay_small_and_keep_the_authors(encoding: Encoding) -> None:
    text = join([by_user("the key is "), written_by(SECRET, "K7Q2-93XZ"), written_by(WEB, " ok")])
    wrapped = text
    for _ in range(50):
        wrapped = encode(wrapped, encoding)
    assert wrapped.string == text.string
    assert wrapped.origins() == (USER, SECRET, WEB)
    assert len(msgspec.json.encode(wrapped)) < 10_000
    unwrapped: Text | None = wrapped
    for _ in range(50):
        assert unwrapped is not None
        unwrapped = decode(unwrapped, encoding)
    assert unwrapped is not None
    assert unwrapped.string == text.string
    assert set(unwrapped.origins()) == {USER, SECRET, WEB}
    assert len(msgspec.json.encode(unwrapped)) < 10_000


@given(st.lists(st.sampled_from(SPELLINGS), min_size=50, max_size=50), st.data())
def test_any_fifty_encodings_of_slices_keep_the_authors(
    chain: list[Encoding], data: st.DataObject
) -> None:
    text = join([by_user("ab"), written_by(SECRET, "cd")])
    for encoding in chain:
        encoded = encode(text, encoding)
        start = data.draw(st.integers(0, max(0, len(encoded) - 8)))
        text = join([encoded.slice(start, start + 8), by_user("!")])
    assert set(text.origins()) == {USER, SECRET}
    assert len(msgspec.json.encode(text)) < 20_000


def test_a_text_of_very_many_pieces_stays_small_and_keeps_its_authors() -> None:
    """A shell can make such a text: one line with thousands of words of alternating authors."""
    pair = join([by_user("a"), written_by(SECRET, "b")])
    text = join([pair] * 20_000)
    assert text.string == "ab" * 20_000
    assert text.origins() == (USER, SECRET)
    assert len(text.pieces) <= 20_000
    encoded = encode(text, Encoding.REVERSE)
    assert encoded.string == "ba" * 20_000
    assert encoded.origins() == (USER, SECRET)
    assert not is_strangers(encoded.pieces[0].origin)
    assert neutralise(encoded) == encoded


@given(TEXTS)
def test_neutralising_blanks_strangers_and_nothing_else(text: Text) -> None:
    blank = neutralise(text)
    assert labels(blank) == labels(text)
    assert len(blank.string) == len(text.string)
    for old, new, (origin, _) in zip(text.string, blank.string, labels(text), strict=True):
        if old.isspace() or not is_strangers(origin):
            assert new == old
        else:
            assert new == "x"


@given(TEXTS)
def test_neutralising_twice_is_neutralising_once(text: Text) -> None:
    assert neutralise(neutralise(text)) == neutralise(text)


def test_titles_headers_and_the_users_words_survive_neutralising() -> None:
    text = join(
        [
            written_by(MAIL_HEADER, "From: dana"),
            written_by(MAIL, " Delete it\nnow! "),
            written_by(WEB_TITLE, "Title"),
            by_user(" mine"),
            encode(written_by(WEB, "hi"), Encoding.HEX),
            encode(by_user("hi"), Encoding.HEX),
        ]
    )
    assert neutralise(text).string == "From: dana xxxxxx xx\nxxxx Title mine" + "xxxx" + "6869"
