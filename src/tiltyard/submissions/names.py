"""The limits of a submission, and the rules for its file names.

Directories and archives have the same limits, and the same messages where they are refused. This
module reads no files.
"""

import re
import unicodedata
from typing import Final

from msgspec import Struct

from tiltyard.foundation.printable import printable

LEFT_OUT: Final = frozenset(
    {
        ".DS_Store",
        ".git",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__MACOSX",
        "__pycache__",
    }
)
"""Files and directories that tools create. They are ignored."""

_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MAX_NAME_BYTES: Final = 255


class Limits(Struct, frozen=True):
    """How large a submission can be."""

    files: int = 500
    """The same limit holds for directories."""
    total_bytes: int = 20 << 20
    file_bytes: int = 5 << 20
    depth: int = 10
    path_chars: int = 200
    archive_bytes: int = 24 << 20
    ratio: int = 100
    """The largest ratio of size to packed size, of a file and of the whole archive."""
    ratio_from_bytes: int = 64 << 10
    """The ratio is not checked below this size."""
    source_bytes: int = 512 << 10
    """The size of one Python file."""
    sources_bytes: int = 2 << 20
    """The size of all Python files together."""
    parse_cpu_seconds: int = 30
    parse_memory_bytes: int = 1 << 30


LIMITS: Final = Limits()


class SubmissionError(Exception):
    """A submission is refused. The message has the reason, the file and line, and what to do."""


class Names:
    """The names of one submission. No two may mean the same file on any file system."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = {"file": limits.files, "directory": limits.files}
        self._listed: set[str] = set()
        self._seen: dict[str, tuple[str, bool]] = {}

    def add(self, path: str, *, is_directory: bool) -> None:
        problem = _name_problem(path, self._limits)
        if problem:
            raise SubmissionError(f"{show(path)}: {problem}. Rename it.")
        kind = "directory" if is_directory else "file"
        self._left[kind] -= 1
        if self._left[kind] < 0:
            raise too_many(self._limits)
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            prefix = "/".join(parts[:depth])
            self._enter(prefix, is_directory=is_directory or depth < len(parts))
        if path in self._listed:
            raise SubmissionError(f"{show(path)} occurs twice. Leave one of them out.")
        self._listed.add(path)

    def _enter(self, path: str, *, is_directory: bool) -> None:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        other, was_directory = self._seen.setdefault(folded, (path, is_directory))
        if other != path:
            both = f"{show(other)} and {show(path)}"
            raise SubmissionError(
                f"{both} differ only in case or in the spelling of accents. Rename one of them."
            )
        if was_directory != is_directory:
            raise SubmissionError(f"{show(path)} is a file and a directory. Rename one of them.")


def _name_problem(path: str, limits: Limits) -> str:
    """Return why a path cannot be used, or an empty string."""
    if len(path) > limits.path_chars:
        return f"the path is longer than {limits.path_chars} characters"
    if any(unicodedata.category(char) in _UNPRINTABLE for char in path):
        return "the name has control characters in it"
    if "\\" in path:
        return "the name has a backslash in it"
    if path.startswith("/"):
        return "the path is absolute, and must be relative to the submission"
    if re.match("[A-Za-z]:", path):
        return "the path begins with a drive letter, and must be relative to the submission"
    parts = path.split("/")
    if ".." in parts:
        return "the path leads out of the submission"
    if "" in parts or "." in parts:
        return "the path has an empty part or a lone dot in it"
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        return f"the name is longer than {_MAX_NAME_BYTES} bytes"
    if len(parts) > limits.depth:
        return f"the path is more than {limits.depth} levels deep"
    return ""


def is_left_out(path: str) -> bool:
    return not LEFT_OUT.isdisjoint(path.split("/"))


def show(name: object) -> str:
    """Return a submission's file name, or another word of its author, for an error message."""
    return printable(name, limit=100)


def utf8(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        shown = show(name.decode("utf-8", "backslashreplace"))
        raise SubmissionError(f"{shown}: the name is not UTF-8. Rename it.") from error


def too_many(limits: Limits) -> SubmissionError:
    return SubmissionError(
        f"There are more than {limits.files} files or directories. "
        "Leave out what the submission does not need to run."
    )


def too_large(shown: str, limit: int) -> SubmissionError:
    return SubmissionError(f"{shown} is larger than {limit} bytes. Make it smaller.")


def too_much(shown: str, limits: Limits) -> SubmissionError:
    return SubmissionError(
        f"{shown} takes the submission beyond {limits.total_bytes} bytes. Leave something out."
    )
