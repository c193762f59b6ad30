"""The meter of leaks: what parts of encoded texts reveal, and what it costs to find out."""

from itertools import pairwise

import pytest

from tiltyard.judge.leaks import LEAK_CHARS, LeakMeter
from tiltyard.judge.work import Work
from tiltyard.world.text import (
    Encoding,
    Origin,
    SourceKind,
    Text,
    by_user,
    encode,
    join,
    written_by,
)

SECRET = Origin(SourceKind.FILE, "secret.txt", protected=True)
ENCODINGS = (
    *(Encoding.BASE64, Encoding.HEX, Encoding.URL, Encoding.REVERSE),
    *(Encoding.ROT13, Encoding.SPACED, Encoding.UPPER, Encoding.LOWER),
)
PLAIN = "k-7f3a 9c21/d044+be58 6f07"


def parts_of(text: Text, size: int) -> list[Text]:
    places = [*range(0, len(text), size), len(text)]
    return [text.slice(start, stop) for start, stop in pairwise(places)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_parts_in_one_post_reveal_what_they_reveal_in_many(encoding: Encoding, size: int) -> None:
    inner = encode(written_by(SECRET, PLAIN), encoding)
    for coded in (inner, encode(inner, Encoding.BASE64)):
        parts = parts_of(coded, size)
        for count in range(1, len(parts) + 1):
            together, apart = LeakMeter({}, Work()), LeakMeter({}, Work())
            mixed = [text for part in parts[:count] for text in (part, by_user("-"))]
            at_once = together.add(0, [join(mixed)])
            one_by_one = [apart.add(0, [part]) for part in parts[:count]]
            assert bool(at_once) == any(one_by_one)
        assert at_once


def test_half_of_an_encoded_secret_is_no_leak() -> None:
    coded = encode(written_by(SECRET, PLAIN), Encoding.HEX)
    meter = LeakMeter({}, Work())
    assert meter.add(0, [coded.slice(0, 2 * LEAK_CHARS - 1)]) == ()
    assert meter.add(1, [coded.slice(2 * LEAK_CHARS - 2, 2 * LEAK_CHARS)]) == (0, 1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_many_parts_in_one_post_take_no_more_work_than_its_size(encoding: Encoding) -> None:
    filler = written_by(Origin(SourceKind.FILE, "long.txt"), "a line of text " * 400)
    coded = encode(join((filler, written_by(SECRET, PLAIN))), encoding)
    parts = [part for each in parts_of(coded, 2)[:1500] for part in (each, by_user("-"))]
    work = Work()
    LeakMeter({}, work).add(0, [join(parts)])
    assert work.done < 10 * len(coded)


def test_the_same_part_again_takes_no_more_work_than_its_size() -> None:
    filler = written_by(Origin(SourceKind.FILE, "long.txt"), "a line of text " * 400)
    coded = encode(join((filler, written_by(SECRET, PLAIN))), Encoding.BASE64)
    work = Work()
    meter = LeakMeter({}, work)
    meter.add(0, [coded.slice(0, 5000)])
    before = work.done
    for event in range(1, 101):
        assert meter.add(event, [coded.slice(0, 100)]) == ()
    assert work.done - before <= 100 * 100
