"""Safe access to files: open only regular files and directories, and write files atomically.

Nothing here follows links, opens devices or pipes, or trusts the size of a file. Callers turn a
`Problem` into their own error message.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK: Final = 1 << 16


class Problem(Enum):
    MISSING = auto()
    LINK = auto()
    SPECIAL = auto()
    """It is neither a regular file nor a directory."""
    CLOSED = auto()
    """It cannot be opened."""
    UNREADABLE = auto()
    """It is open but cannot be read."""


class NotPlainError(Exception):
    """The path cannot be used; `problem` says why."""

    def __init__(self, problem: Problem, reason: str = "") -> None:
        super().__init__(reason)
        self.problem = problem
        self.reason = reason


@contextmanager
def open_plain(name: str, parent: int | None) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file or a directory without following links or blocking.

    Check the type before opening, because opening a device can already have an effect. Check it
    again afterwards, because the file may have been replaced in between.
    """
    try:
        _refuse_special(os.stat(name, dir_fd=parent, follow_symlinks=False))
        handle = os.open(name, _FLAGS, dir_fd=parent)
    except FileNotFoundError as error:
        raise NotPlainError(Problem.MISSING) from error
    except (OSError, ValueError) as error:
        raise NotPlainError(Problem.CLOSED, reason_of(error)) from error
    try:
        status = os.fstat(handle)
        _refuse_special(status)
        yield handle, status
    except OSError as error:
        raise NotPlainError(Problem.UNREADABLE, reason_of(error)) from error
    finally:
        os.close(handle)


def _refuse_special(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise NotPlainError(Problem.LINK)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise NotPlainError(Problem.SPECIAL)


def read_at_most(handle: int, status: os.stat_result, limit: int) -> bytes | None:
    """Return the content of a regular file; None if it is larger than `limit`, or becomes so."""
    left = limit + 1 if status.st_size <= limit else 0
    chunks: list[bytes] = []
    while left and (chunk := os.read(handle, min(left, max(status.st_size + 1, _CHUNK)))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks) if left else None


def reason_of(error: Exception) -> str:
    """Return the message of the operating system without the path."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def write_whole(path: Path, data: bytes, *, secret: bool = False) -> None:
    """Write a file atomically: a reader sees the whole file or none.

    Only the user can read a `secret` file and its directory.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if secret:
        path.parent.chmod(0o700)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o600 if secret else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
