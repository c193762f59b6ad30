"""The wire: what comes out of a guest, however broken, ends in a verdict and nothing else."""

import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.isolation.wire import (
    MAX_FRAME_BYTES,
    Channel,
    Decide,
    Enter,
    FromGuest,
    FromJudge,
    GoneError,
    LateError,
    MalformedError,
    Seen,
    Told,
    WireError,
)


class Line:
    """A judge's end, and the bare pipe ends of whoever is at the other one."""

    def __init__(self) -> None:
        self.their_read, to_guest = os.pipe()
        from_guest, self.their_write = os.pipe()
        self.judge: Channel[Any] = Channel(from_guest, to_guest, FromGuest)
        self.open = [self.their_read, to_guest, from_guest, self.their_write]

    def ask(self) -> bytes:
        """Have the judge ask something, and return the question's name."""
        self.judge.send(Decide([]))
        return os.read(self.their_read, 1 << 16)[4:12]

    def hang_up(self) -> None:
        os.close(self.their_write)
        self.open.remove(self.their_write)

    def close(self) -> None:
        for fd in self.open:
            os.close(fd)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


def frame(body: bytes, name: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body


ALLOWED = msgspec.msgpack.encode(["told", "allow", ""])


def test_what_is_sent_arrives(line: Line) -> None:
    guest: Channel[Any] = Channel(line.their_read, line.their_write, FromJudge, patient=True)
    args: dict[str, str | int | None] = {"path": "ä", "n": 1}
    seen = Seen("fs.read", args, *(True, "text", None, "file", "allow", "", True))
    line.judge.send(Decide([Enter(3), seen], "fs.write", {"path": "x", "content": None}))
    assert guest.receive() == Decide([Enter(3), seen], "fs.write", {"path": "x", "content": None})
    guest.send(Told("deny", "no", None, None, ["oops"]))
    assert line.judge.receive() == Told("deny", "no", None, None, ["oops"])


def test_a_large_frame_arrives_in_pieces(line: Line) -> None:
    guest: Channel[Any] = Channel(line.their_read, line.their_write, FromJudge, patient=True)
    told = Told("deny", "x" * 900_000)
    line.judge.send(Decide([]))
    guest.receive()
    sender = threading.Thread(target=guest.send, args=(told,))
    sender.start()
    assert line.judge.receive(10) == told
    sender.join()


@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_verdict(data: bytes) -> None:
    line = Line()
    try:
        name = line.ask()
        os.write(line.their_write, data[:4] + name + data[4:])
        line.hang_up()
        try:
            line.judge.receive(1)  # One whole frame by chance; then nobody is there.
        except WireError:
            return
        with pytest.raises(WireError):
            line.judge.receive(1)
    finally:
        line.close()


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=12,
)


@given(st.sampled_from(["told", "done", "asked", "ready", "nonsense"]), st.lists(json_like))
def test_a_frame_of_wrong_types_is_malformed_or_right(tag: str, fields: list[Any]) -> None:
    line = Line()
    try:
        body = msgspec.msgpack.encode([tag, *fields])
        os.write(line.their_write, frame(body, line.ask())[:60_000])
        line.hang_up()
        try:
            got = line.judge.receive(1)
        except WireError:
            return
        assert isinstance(got, FromGuest)
    finally:
        line.close()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda name: struct.pack(">I", MAX_FRAME_BYTES + 1) + name, MalformedError),
        (lambda name: struct.pack(">I", 2**32 - 1) + name, MalformedError),
        (lambda name: frame(b"\x91" * 5_000 + b"\xc0", name), MalformedError),
        (lambda name: frame(b"", name), MalformedError),
        (lambda name: frame(ALLOWED, name) + b"x", MalformedError),
        (lambda name: frame(ALLOWED, name) * 2, MalformedError),
        (lambda name: frame(ALLOWED, name[::-1]), MalformedError),
        (lambda name: name[:2], GoneError),
        (lambda _: b"", GoneError),
    ],
    ids=["large", "huge", "deep", "empty", "trailing", "two", "misnamed", "cut", "none"],
)
def test_what_no_guest_may_send(
    line: Line, answer: Callable[[bytes], bytes], problem: type[WireError]
) -> None:
    os.write(line.their_write, answer(line.ask()))
    line.hang_up()
    with pytest.raises(problem):
        line.judge.receive(2)


def test_what_was_not_asked_yet_cannot_be_answered(line: Line) -> None:
    first = line.ask()
    os.write(line.their_write, frame(ALLOWED, first))
    assert line.judge.receive(2) == Told("allow", "")
    # Long before the next question, and with a name that was good once.
    os.write(line.their_write, frame(ALLOWED, first))
    line.ask()
    with pytest.raises(MalformedError, match="not asked"):
        line.judge.receive(2)


def test_silence_is_late(line: Line) -> None:
    with pytest.raises(LateError):
        line.judge.receive(0.05)


def test_a_trickle_is_late_too(line: Line) -> None:
    """The deadline is for the whole frame, however many bytes come meanwhile."""
    stop = threading.Event()
    name = line.ask()

    def trickle() -> None:
        data = frame(b"x" * 10_000, name)
        for at in range(len(data)):
            if stop.wait(0.01):
                return
            os.write(line.their_write, data[at : at + 1])

    sender = threading.Thread(target=trickle)
    sender.start()
    with pytest.raises(LateError):
        line.judge.receive(0.2)
    stop.set()
    sender.join()


def test_nobody_reading_is_late(line: Line) -> None:
    told = Decide([], "fs.write", {"content": "x" * 500_000})
    with pytest.raises(LateError):
        line.judge.send(told, 0.1)


def test_a_frame_that_is_too_large_is_not_sent(line: Line) -> None:
    with pytest.raises(MalformedError, match="too large"):
        line.judge.send(Decide([], "fs.write", {"content": "x" * MAX_FRAME_BYTES}))


def test_writing_to_nobody_is_an_end(line: Line) -> None:
    os.close(line.their_read)
    line.open.remove(line.their_read)
    with pytest.raises(GoneError):
        line.judge.send(Decide([]))
