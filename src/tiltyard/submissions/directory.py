"""Reads directories and files without following links or blocking, and writes them for a guest.

Files may change while they are read. So this module uses only what it has read, and never an
earlier look at the file.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from tiltyard.foundation.files import NotPlainError, Problem, open_plain, read_at_most, reason_of
from tiltyard.submissions.names import (
    LEFT_OUT,
    Limits,
    Names,
    SubmissionError,
    show,
    too_large,
    too_many,
    too_much,
    utf8,
)

_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Walk:
    """Reads one directory, which may change meanwhile."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._names = Names(limits)
        self._bytes_left = limits.total_bytes

    def read(self, root: int) -> dict[str, bytes]:
        return dict(self._walk(root, ""))

    def _walk(self, directory: int, prefix: str) -> Iterator[tuple[str, bytes]]:
        most = 2 * self._limits.files
        with os.scandir(directory) as entries:
            found = [entry.name for entry in islice(entries, most + len(LEFT_OUT) + 1)]
        names = sorted(name for name in found if name not in LEFT_OUT)
        if len(names) > most:
            raise too_many(self._limits)
        for name in names:
            path = prefix + utf8(os.fsencode(name))
            with opened(name, directory, show(path)) as (handle, status):
                is_directory = stat.S_ISDIR(status.st_mode)
                self._names.add(path, is_directory=is_directory)
                if is_directory:
                    yield from self._walk(handle, path + "/")
                else:
                    yield path, self._read_file(handle, status, show(path))

    def _read_file(self, handle: int, status: os.stat_result, shown: str) -> bytes:
        data = read_within(handle, status, self._limits.file_bytes, shown)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise too_much(shown, self._limits)
        return data


@contextmanager
def opened(name: str, parent: int | None, shown: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a plain file or a directory, or refuse the submission."""
    try:
        with open_plain(name, parent) as found:
            yield found
    except NotPlainError as error:
        problem = _PROBLEMS[error.problem].format(error.reason)
        raise SubmissionError(f"{shown} {problem}.") from error


_PROBLEMS: Final = {
    Problem.MISSING: "does not exist. Check the path",
    Problem.LINK: "is a link. Put the file itself in its place",
    Problem.SPECIAL: "is neither a file nor a directory. Leave it out",
    Problem.CLOSED: "cannot be opened: {}",
    Problem.UNREADABLE: "cannot be read: {}",
}


def read_within(handle: int, status: os.stat_result, limit: int, shown: str) -> bytes:
    data = read_at_most(handle, status, limit)
    if data is None:
        raise too_large(shown, limit)
    return data


def check_fresh(into: Path) -> None:
    """Raise if `into` is not a new or empty directory, which is an error of the caller."""
    if into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir()))):
        raise FileExistsError(f"{into} must be a new or an empty directory")
    if not into.parent.is_dir():
        raise NotADirectoryError(f"{into.parent} is not a directory")


def write(files: Mapping[str, bytes], into: Path) -> None:
    made = not into.exists()
    _make_directory(into)
    try:
        for name, data in files.items():
            parents = name.split("/")[:-1]
            for depth in range(1, len(parents) + 1):
                _make_directory(into.joinpath(*parents[:depth]))
            _write_file(into / name, data)
    except OSError as error:
        _empty(into)
        if made:
            into.rmdir()
        raise SubmissionError(f"The submission cannot be written: {reason_of(error)}.") from error


def _empty(directory: Path) -> None:
    for child in directory.iterdir():
        if child.is_dir():
            shutil.rmtree(child)
        else:
            child.unlink()


def _make_directory(path: Path) -> None:
    path.mkdir(exist_ok=True)
    path.chmod(0o755)  # Independent of the umask: a guest may have another uid.


def _write_file(path: Path, data: bytes) -> None:
    handle = os.open(path, _WRITE_FLAGS, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        os.fchmod(handle, 0o644)
