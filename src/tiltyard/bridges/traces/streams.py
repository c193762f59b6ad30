"""Open trace files, and read them in bounded pieces."""

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tiltyard.bridges.traces.errors import BadFileError

MAX_LINE_BYTES: Final = 64_000_000
"""A run of this size has more text than any model reads."""
_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
HEAD_BYTES: Final = 1 << 16


class Source:
    """An open trace file. A compressed one is decompressed while it is read."""

    def __init__(self, path: Path, raw: "io.BufferedReader[io.FileIO]") -> None:
        self.path = path
        self._raw = raw
        start = raw.read(len(_GZIP))
        raw.seek(0)
        self._gzip = start == _GZIP
        self.stream = self._open()
        self.head = self._read_head()

    def _open(self) -> "io.BufferedReader[io.FileIO] | gzip.GzipFile":
        # A larger buffer would lose what comes before the damage in a damaged file.
        return gzip.GzipFile(fileobj=self._raw) if self._gzip else self._raw

    def _read_head(self) -> bytes:
        """Return the first bytes, to detect the format."""
        head = b""
        with suppress(BadFileError):  # It comes again when the file is read.
            while len(head) < HEAD_BYTES and (more := self.read(HEAD_BYTES - len(head))):
                head += more
        self._raw.seek(0)
        self.stream = self._open()
        return head

    @property
    def position(self) -> int:
        """How much of the file was read, in bytes on the disk."""
        return self._raw.tell()

    def read(self, size: int = _CHUNK) -> bytes:
        """Return some bytes, at most `size`; none at the end."""
        return self._guarded(lambda: self.stream.read1(size))

    def read_whole(self, most: int) -> bytes:
        """Return the rest of the file, or its first `most` bytes."""
        return self._guarded(lambda: self.stream.read(most))

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the numbers and the texts of all lines that are not blank.

        None stands for a line that is too long.
        """
        number = 0
        while line := self._guarded(lambda: self.stream.readline(MAX_LINE_BYTES + 1)):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                self._skip_line(line)
                yield number, None
            elif line.strip():
                yield number, line

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._guarded(lambda: self.stream.readline(_CHUNK))

    def _guarded(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadFileError(f"the compressed file is damaged: {error}") from None


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a regular file. Links are followed: the user names the files."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with io.BufferedReader(io.FileIO(handle), _CHUNK) as raw:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadFileError("it is not a regular file")
        yield Source(path, raw)
