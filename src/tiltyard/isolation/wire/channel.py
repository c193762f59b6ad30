"""The channel: frames over two pipes, each with an absolute deadline.

A frame is a header (four bytes of length, eight bytes of request id) and a msgpack document of at
most 1 MiB. The judge sends one request at a time and waits for the reply, which must repeat the
request id. The id is random, so a guest cannot reply to a request that was not sent yet.
Anything else that a guest sends (too much, too late, malformed, unasked) is a `WireError`.
"""

import os
import select
import struct
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

MAX_FRAME_BYTES: Final = 1 << 20
_HEADER: Final = struct.Struct(">I8s")
_ID_BYTES: Final = 8
_IDS_AT_ONCE: Final = 512
_CHUNK_BYTES: Final = 1 << 16


class WireError(Exception):
    """The other side broke the protocol, or ended."""


class GoneError(WireError):
    """The other side ended."""


class LateError(WireError):
    """The other side missed its deadline."""


class MalformedError(WireError):
    """The other side sent something that is not the frame expected next."""


T = TypeVar("T")


@cache
def decoder_of(incoming: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder for a union of frames. Building one takes a while, so it is cached."""
    return msgspec.msgpack.Decoder(incoming)


class Channel(Generic[T]):
    """One end of the wire. `T` is the type of the frames that come in.

    The guest's end is `blocking`: it waits for requests, and repeats their ids. The judge's end
    makes the ids, and never waits past a deadline.
    """

    def __init__(
        self, read_fd: int, write_fd: int, incoming: Any, *, blocking: bool = False
    ) -> None:
        self._read, self._write = read_fd, write_fd
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[T] = decoder_of(incoming)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(read_fd, select.POLLIN)
        self._writable.register(write_fd, select.POLLOUT)
        self._blocking = blocking
        self._ids = _random_ids()
        self._id = next(self._ids)
        """The id of the last request."""
        self._buffer = bytearray()
        os.set_blocking(read_fd, blocking)
        os.set_blocking(write_fd, blocking)

    def send(self, frame: Any, seconds: float | None = None) -> None:
        """Send a frame within `seconds`."""
        buffer = self._buffer
        try:
            self._encoder.encode_into(frame, buffer, _HEADER.size)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise MalformedError(f"cannot encode the frame: {error}") from None
        size = len(buffer) - _HEADER.size
        if size > MAX_FRAME_BYTES:
            raise MalformedError(
                f"a frame of {size:,} bytes is too large; the limit is {MAX_FRAME_BYTES:,}"
            )
        if not self._blocking:
            self._id = next(self._ids)
        _HEADER.pack_into(buffer, 0, size, self._id)
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
        """Send a frame, and return the reply."""
        self.send(frame, seconds)
        return self.receive(seconds)

    def receive(self, seconds: float | None = None) -> T:
        """Return the next frame. The pipe must contain exactly one."""
        end = None if seconds is None else time.monotonic() + seconds
        data = self._read_some(end)
        while len(data) < _HEADER.size:
            data += self._read_some(end)
        size, request_id = _HEADER.unpack_from(data)
        if size > MAX_FRAME_BYTES:
            raise MalformedError(
                f"sent a frame of {size:,} bytes; the limit is {MAX_FRAME_BYTES:,}"
            )
        if self._blocking:
            self._id = request_id
        elif request_id != self._id:
            raise MalformedError("sent a reply to a request that was not made")
        whole = _HEADER.size + size
        if len(data) < whole:
            data = self._read_rest(data, whole, end)
        if len(data) > whole:
            raise MalformedError("sent more than one reply")
        try:
            return self._decoder.decode(memoryview(data)[_HEADER.size :])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise MalformedError(f"sent a frame that cannot be decoded: {error}") from None

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
                # Judge and guest share a core, so the reply has often arrived already. Reading
                # before polling saves a system call then.
                data = os.read(self._read, _CHUNK_BYTES)
            except BlockingIOError:
                _wait(self._readable, end)
                continue
            except OSError:
                raise GoneError("the other side ended") from None
            if not data:
                raise GoneError("the other side ended")
            return data


def _random_ids() -> Iterator[bytes]:
    """Yield request ids that a guest cannot predict."""
    while True:
        drawn = os.urandom(_ID_BYTES * _IDS_AT_ONCE)
        for at in range(0, len(drawn), _ID_BYTES):
            yield drawn[at : at + _ID_BYTES]


def _wait(poll: select.poll, end: float | None) -> None:
    if end is None:
        poll.poll()
        return
    left = end - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise LateError("the other side missed its deadline")
