"""The wire: whatever a guest sends, the judge gets a valid frame or a `WireError`."""

import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.contracts.decision import Action, Fault
from tiltyard.isolation.wire.channel import (
    MAX_FRAME_BYTES,
    Channel,
    GoneError,
    LateError,
    MalformedError,
    WireError,
)
from tiltyard.isolation.wire.frames import (
    Decide,
    Decided,
    Enter,
    FaultNote,
    FromGuest,
    FromJudge,
    Seen,
    SourceLine,
)
from tiltyard.world.text import SourceKind


class Line:
    """The judge's channel, and the bare pipe ends of its guest."""

    def __init__(self) -> None:
        self.their_read, to_guest = os.pipe()
        from_guest, self.their_write = os.pipe()
        self.judge: Channel[Any] = Channel(from_guest, to_guest, FromGuest)
        self.open = [self.their_read, to_guest, from_guest, self.their_write]

    def ask(self) -> bytes:
        """Let the judge send a request, and return its id."""
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


ALLOWED = msgspec.msgpack.encode(["decided", "allow", ""])


def test_frames_arrive_as_they_were_sent(line: Line) -> None:
    guest: Channel[Any] = Channel(line.their_read, line.their_write, FromJudge, blocking=True)
    args: dict[str, str | int | None] = {"path": "ä", "n": 1}
    seen = Seen(
        "fs.read",
        args,
        ok=True,
        output="text",
        error=None,
        source=SourceKind.FILE,
        decision=Action.ALLOW,
        reason="",
        observe=True,
    )
    line.judge.send(Decide([Enter(3), seen], "fs.write", {"path": "x", "content": None}))
    assert guest.receive() == Decide([Enter(3), seen], "fs.write", {"path": "x", "content": None})
    error = FaultNote(Fault.RAISED, "KeyError: 'x'", SourceLine("guardrail.py", 7))
    decided = Decided(Action.DENY, "no", None, error, [error])
    guest.send(decided)
    assert line.judge.receive() == decided


def test_a_large_frame_arrives_in_pieces(line: Line) -> None:
    guest: Channel[Any] = Channel(line.their_read, line.their_write, FromJudge, blocking=True)
    told = Decided(Action.DENY, "x" * 900_000)
    line.judge.send(Decide([]))
    guest.receive()
    sender = threading.Thread(target=guest.send, args=(told,))
    sender.start()
    assert line.judge.receive(10) == told
    sender.join()


@given(st.binary(max_size=300))
def test_any_bytes_give_a_frame_or_a_wire_error(data: bytes) -> None:
    line = Line()
    try:
        name = line.ask()
        os.write(line.their_write, data[:4] + name + data[4:])
        line.hang_up()
        try:
            line.judge.receive(1)  # By chance a valid frame; the next read fails.
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


@given(
    st.sampled_from(["decided", "candidates", "env-call", "failed", "ready", "nonsense"]),
    st.lists(json_like),
)
def test_frame_of_random_fields_is_valid_or_malformed(tag: str, fields: list[Any]) -> None:
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
def test_invalid_answers_are_refused(
    line: Line, answer: Callable[[bytes], bytes], problem: type[WireError]
) -> None:
    os.write(line.their_write, answer(line.ask()))
    line.hang_up()
    with pytest.raises(problem):
        line.judge.receive(2)


def test_answer_before_its_request_is_refused(line: Line) -> None:
    first = line.ask()
    os.write(line.their_write, frame(ALLOWED, first))
    assert line.judge.receive(2) == Decided(Action.ALLOW, "")
    # Before the next request, and with an id that was valid once.
    os.write(line.their_write, frame(ALLOWED, first))
    line.ask()
    with pytest.raises(MalformedError, match="not made"):
        line.judge.receive(2)


def test_no_answer_is_late(line: Line) -> None:
    with pytest.raises(LateError):
        line.judge.receive(0.05)


def test_deadline_holds_for_the_whole_frame(line: Line) -> None:
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


def test_full_pipe_is_late(line: Line) -> None:
    told = Decide([], "fs.write", {"content": "x" * 500_000})
    with pytest.raises(LateError):
        line.judge.send(told, 0.1)


def test_a_frame_that_is_too_large_is_not_sent(line: Line) -> None:
    with pytest.raises(MalformedError, match="too large"):
        line.judge.send(Decide([], "fs.write", {"content": "x" * MAX_FRAME_BYTES}))


def test_writing_to_a_closed_pipe_raises_gone_error(line: Line) -> None:
    os.close(line.their_read)
    line.open.remove(line.their_read)
    with pytest.raises(GoneError):
        line.judge.send(Decide([]))
