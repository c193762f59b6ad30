"""An append-only log of values, to continue interrupted work.

Reading drops a last record that a crash cut off. The log is trusted as much as its directory, which
belongs to the organizer.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar
from zlib import crc32

import msgspec

T = TypeVar("T")

_HEAD: Final = 8
FLUSH_BYTES: Final = 65_536
MAX_BYTES: Final = 1 << 28
"""Limit of one log. Later values are not logged; interrupted work has to repeat them."""


class Log(Generic[T]):
    """Values of one type in the order of their addition, those of an earlier run first."""

    def __init__(self, path: Path, kind: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._encoder = msgspec.msgpack.Encoder()
        data = path.read_bytes() if path.exists() else b""
        self._old: list[T] = []
        good = 0
        for value, end in self._records(data):
            self._old.append(value)
            good = end
        self._old.reverse()
        self.recorded = len(self._old)
        """Number of values from earlier runs."""
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(good)
        self._file.seek(good)
        self._waiting: list[bytes] = []
        self._size = 0
        self._written = good

    def _records(self, data: bytes) -> Iterator[tuple[T, int]]:
        at = 0
        while at + _HEAD <= len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            check = int.from_bytes(data[at + 4 : at + _HEAD], "big")
            body = data[at + _HEAD : at + _HEAD + size]
            if len(body) < size or crc32(body) != check:
                return
            try:
                value = self._decoder.decode(body)
            except msgspec.MsgspecError:
                return
            at += _HEAD + size
            yield value, at

    def replay(self) -> T | None:
        """Return the next value of an earlier run, or None if there is none left."""
        return self._old.pop() if self._old else None

    def add(self, value: T) -> None:
        if self._written >= MAX_BYTES:
            return
        body = self._encoder.encode(value)
        self._written += _HEAD + len(body)
        self._waiting += (len(body).to_bytes(4, "big"), crc32(body).to_bytes(4, "big"), body)
        self._size += _HEAD + len(body)
        if self._size >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._file.write(b"".join(self._waiting))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting, self._size = [], 0

    def close(self) -> None:
        self.flush()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
