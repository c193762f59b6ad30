"""`printable` makes hostile text safe to print."""

from hypothesis import given
from hypothesis import strategies as st

from tiltyard.foundation.printable import printable

ANY_TEXT = st.text(st.characters(categories=None))


@given(ANY_TEXT)
def test_the_result_is_printable_valid_unicode(text: str) -> None:
    for result in (printable(text), printable(text, replacement="_")):
        assert result.isprintable()
        result.encode("utf-8")


@given(ANY_TEXT)
def test_kept_characters_are_the_only_unprintable_ones(text: str) -> None:
    result = printable(text, keep="\n\t")
    assert result.replace("\n", "").replace("\t", "").isprintable()
    assert result.count("\n") == text.count("\n")


@given(st.text(st.characters(categories=("L", "N", "P", "S")) | st.just(" ")))
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_unprintable_characters_are_escaped() -> None:
    assert printable("a\x1b[2Jb\n\N{RIGHT-TO-LEFT OVERRIDE}\ud800") == r"a\x1b[2Jb\n\u202e\ud800"


def test_characters_can_be_spelled_out_or_replaced() -> None:
    brackets = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}"
    assert printable(f"{brackets}SECRET", spell_out=brackets) == r"\u27e6SECRET"
    assert printable("a[b", spell_out="[") == r"a\x5bb"
    assert printable("a\x1b\nb", keep="\n", replacement="") == "a\nb"


def test_a_long_text_ends_in_dots() -> None:
    assert printable("x" * 10, limit=10) == "x" * 10
    assert printable("x" * 11, limit=10) == "xxxxxxx..."
    assert printable("x" * 11, limit=1) == "..."
