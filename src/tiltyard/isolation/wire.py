"""The wire between judge and guest: two pipes, typed frames, absolute deadlines.

A frame is four bytes of length, eight that name the question, and a msgpack document, at most
1 MiB. One frame is outstanding at a time: whoever asked waits for the answer, which has to repeat
the question's name, so that nobody answers what was not asked yet. Whatever else comes out of the
guest (too much, too late, malformed, unasked) ends it with a verdict, and never raises anything
else in the judge.
"""

import os
import select
import struct
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from tiltyard.contracts.tracks import Part

MAX_FRAME_BYTES: Final = 1 << 20
_HEADER: Final = struct.Struct(">I8s")
_NAME_BYTES: Final = 8
_NAMES_AT_ONCE: Final = 512
_CHUNK: Final = 1 << 16

Plain = str | int | None


class WireError(Exception):
    """The other side did not keep to the protocol, or is gone."""


class GoneError(WireError):
    """The other side ended."""


class LateError(WireError):
    """The other side missed its deadline."""


class MalformedError(WireError):
    """The other side sent what is no frame of the protocol."""


# What the judge says -------------------------------------------------------------------------


class Load(Struct, tag="load", frozen=True, array_like=True):
    """Load the submission and make one object of its class."""

    part: Part
    module: str
    """A file or package in the submission."""
    key: str
    """What the guest's randomness is drawn from."""
    packages: tuple[str, ...] = ()


class Seen(Struct, tag="seen", frozen=True, array_like=True):
    """An event that happened: it goes into the context, and is observed if its call ran."""

    name: str
    args: dict[str, Plain]
    ok: bool
    output: str
    error: str | None
    source: str
    decision: str
    reason: str
    observe: bool


class Enter(Struct, tag="enter", frozen=True, array_like=True):
    """Go to a state that was committed before; 0 is the beginning."""

    handle: int


class Begin(Struct, tag="begin", frozen=True, array_like=True):
    """The user says something."""

    message: str


class Close(Struct, tag="close", frozen=True, array_like=True):
    """The turn is over."""


class Commit(Struct, tag="commit", frozen=True, array_like=True):
    """Remember this state under a handle."""

    handle: int


class Forget(Struct, tag="forget", frozen=True, array_like=True):
    """Nobody will return to these states any more."""

    handles: list[int]


class Redo(Struct, tag="redo", frozen=True, array_like=True):
    """Decide a call once more, for its effect on the state: the answer is known."""

    name: str
    args: dict[str, Plain]


Note = Enter | Begin | Seen | Close | Commit | Forget | Redo


class Decide(Struct, tag="decide", frozen=True, array_like=True):
    """Take note of what happened, and decide a call if there is one."""

    notes: list[Note]
    name: str = ""
    args: dict[str, Plain] = {}


class Run(Struct, tag="run", frozen=True, array_like=True):
    """Run the attack."""

    seed: int
    max_steps: int
    max_tool_hops: int
    time_budget_s: float


class Given(Struct, tag="given", frozen=True, array_like=True):
    """What an attack's question to its environment came to."""

    events: list[Any] = []
    """Public events, as arrays of their fields."""
    answer: str = ""
    number: int = 0
    """Of a snapshot, or how many events there are in all."""
    egress: list[tuple[str, str]] = []
    """What left: address and data."""
    more: bool = False
    """There is more of it: ask again."""
    steps_left: int | None = None
    error: str = ""


FromJudge = Load | Decide | Run | Given

# What the guest says -------------------------------------------------------------------------


class Ready(Struct, tag="ready", frozen=True, array_like=True):
    """The submission is loaded."""

    python: str
    layers: tuple[str, ...] = ()


class Failed(Struct, tag="failed", frozen=True, array_like=True):
    """The submission could not be loaded, or its attack raised."""

    stage: str
    """`import`, `class`, `construct` or `run`."""
    message: str
    traceback: str = ""


class Told(Struct, tag="told", frozen=True, array_like=True):
    """A decision."""

    action: str
    reason: str
    args: dict[str, Plain] | None = None
    fault: str | None = None
    observe_errors: list[str] = []


class Noted(Struct, tag="noted", frozen=True, array_like=True):
    """There was nothing to decide, and the notes were taken."""

    observe_errors: list[str] = []


class Forgotten(Struct, tag="forgotten", frozen=True, array_like=True):
    """The state to enter is no longer kept: tell it again from the beginning."""


class Asked(Struct, tag="asked", frozen=True, array_like=True):
    """An attack wants something of its environment."""

    what: str
    """`interact`, `more`, `reset`, `snapshot` or `restore`."""
    message: str = ""
    number: int = 0
    max_tool_hops: int = 0


class Done(Struct, tag="done", frozen=True, array_like=True):
    """The attack is over, and these are its candidates, as they came."""

    candidates: list[list[str | None] | str]
    """Each the messages of one; None is no message, and a word is no candidate."""
    more: bool = False
    """There are more of them: say so."""


FromGuest = Ready | Failed | Told | Noted | Forgotten | Asked | Done

T = TypeVar("T")


@cache
def decoder_of(incoming: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return what reads frames of these kinds. It takes a while to make, so it is made once."""
    return msgspec.msgpack.Decoder(incoming)


class Channel(Generic[T]):
    """One end of the wire. `T` is what comes in."""

    def __init__(
        self, read_fd: int, write_fd: int, incoming: Any, *, patient: bool = False
    ) -> None:
        self._read, self._write = read_fd, write_fd
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[T] = decoder_of(incoming)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(read_fd, select.POLLIN)
        self._writable.register(write_fd, select.POLLOUT)
        self._patient = patient
        """True for the guest, who has nothing else to do than to wait, and names no questions."""
        self._names = _unguessable()
        self._name = next(self._names)
        """Of the last question."""
        self._buffer = bytearray()
        os.set_blocking(read_fd, patient)
        os.set_blocking(write_fd, patient)

    def send(self, frame: Any, seconds: float | None = None) -> None:
        buffer = self._buffer
        try:
            self._encoder.encode_into(frame, buffer, _HEADER.size)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise MalformedError(f"cannot be sent: {error}") from None
        size = len(buffer) - _HEADER.size
        if size > MAX_FRAME_BYTES:
            raise MalformedError(f"a frame of {size:,} bytes is too large")
        if not self._patient:
            self._name = next(self._names)
        _HEADER.pack_into(buffer, 0, size, self._name)
        sent = self._write_some(buffer)
        if sent < len(buffer):
            end = None if seconds is None else time.monotonic() + seconds
            rest = memoryview(bytes(buffer))[sent:]
            while rest:
                _wait(self._writable, end)
                rest = rest[self._write_some(rest) :]

    def _write_some(self, data: bytearray | memoryview) -> int:
        try:
            return os.write(self._write, data)
        except BlockingIOError:
            return 0
        except OSError:
            raise GoneError("the other side ended") from None

    def exchange(self, frame: Any, seconds: float) -> T:
        """Send a frame and return the answer."""
        self.send(frame, seconds)
        return self.receive(seconds)

    def receive(self, seconds: float | None = None) -> T:
        """Return the next frame; there is exactly one."""
        end = None if seconds is None else time.monotonic() + seconds
        data = self._read_some(end)
        while len(data) < _HEADER.size:
            data += self._read_some(end)
        size, name = _HEADER.unpack_from(data)
        if size > MAX_FRAME_BYTES:
            raise MalformedError(f"announced a frame of {size:,} bytes")
        if self._patient:
            self._name = name
        elif name != self._name:
            raise MalformedError("answered what it was not asked")
        whole = _HEADER.size + size
        if len(data) < whole:
            data = self._read_rest(data, whole, end)
        if len(data) > whole:
            raise MalformedError("sent more than it was asked for")
        try:
            return self._decoder.decode(memoryview(data)[_HEADER.size :])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise MalformedError(f"sent no frame of the protocol: {error}") from None

    def _read_rest(self, data: bytes, whole: int, end: float | None) -> bytes:
        parts, length = [data], len(data)
        while length < whole:
            more = self._read_some(end)
            parts.append(more)
            length += len(more)
        return b"".join(parts)

    def _read_some(self, end: float | None) -> bytes:
        while True:
            try:
                # On a shared core the answer is often there already: asking for it first saves
                # asking whether it is.
                data = os.read(self._read, _CHUNK)
            except BlockingIOError:
                _wait(self._readable, end)
                continue
            except OSError:
                raise GoneError("the other side ended") from None
            if not data:
                raise GoneError("the other side ended")
            return data


def _unguessable() -> Iterator[bytes]:
    """Yield names for questions that nobody knows before they are asked."""
    while True:
        drawn = os.urandom(_NAME_BYTES * _NAMES_AT_ONCE)
        for at in range(0, len(drawn), _NAME_BYTES):
            yield drawn[at : at + _NAME_BYTES]


def _wait(poll: select.poll, end: float | None) -> None:
    if end is None:
        poll.poll()
        return
    left = end - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise LateError("the other side missed its deadline")
