"""From what a stranger sent to a directory that a guest can be given.

Owns the reading of directories, single files and archives, the limits of each, and the words of
every refusal. Nothing of a submission is imported or run here: where its classes are is read off
its syntax tree, in a process of its own. Whether it can be imported, and its classes made, is
found out in the jail.

Everything is read into memory, which the limits allow, and judged there. Only what was accepted
as a whole is written, so a refusal leaves nothing behind.
"""

import os
import re
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from tiltyard.contracts.tracks import CLASSES, Part
from tiltyard.foundation.printable import printable
from tiltyard.submissions.archive import Archive
from tiltyard.submissions.directory import Walk, check_fresh, opened, read_within, write
from tiltyard.submissions.names import LEFT_OUT, LIMITS, Limits, Names, SubmissionError, show, utf8
from tiltyard.submissions.sources import (
    COMPILED,
    Module,
    choose,
    find_classes,
    misnamed,
    missing,
)

__all__ = [
    "COMPILED",
    "LEFT_OUT",
    "LIMITS",
    "Limits",
    "Module",
    "Submission",
    "SubmissionError",
    "SubmittedFile",
    "digest_of",
    "open_submission",
]


class SubmittedFile(Struct, frozen=True):
    path: str
    """Relative to the submission, with slashes."""
    size: int


class Submission(Struct, frozen=True):
    """A submission that may be given to a guest."""

    name: str
    root: Path
    """Where it was written."""
    files: tuple[SubmittedFile, ...]
    digest: str
    """SHA-256, in hex, of all names and contents: see `digest_of`."""
    modules: dict[Part, Module]
    """Which file to load for a part, where there is exactly one answer."""
    rivals: dict[Part, tuple[Module, ...]]
    """Where there are several answers, all of them."""
    otherwise: dict[Part, str] = {}
    """Where there is none, what to do with a class that looks as if it were meant."""

    def module(self, part: Part) -> Module:
        """Return what to load for a part, or raise and say what is missing."""
        if part in self.modules:
            return self.modules[part]
        raise SubmissionError(missing((part,), self.rivals, self.otherwise))


def open_submission(path: Path, into: Path, limits: Limits = LIMITS) -> Submission:
    """Read a directory, a `.py` or a `.zip`, check all of it, and write it to `into`.

    `into` is new, or an empty directory. No link is followed and nothing is imported. Whatever is
    wrong with the submission is a `SubmissionError`, and then `into` is as it was.
    """
    check_fresh(into)
    files = dict(sorted(_unwrapped(_read(path, limits)).items()))
    found = find_classes(files, limits)
    modules, rivals = choose(found)
    if not modules:
        raise SubmissionError(missing(tuple(CLASSES), rivals, misnamed(found)))
    write(files, into)
    listed = tuple(SubmittedFile(name, len(data)) for name, data in files.items())
    return Submission(
        _name_of(path), into, listed, digest_of(files), modules, rivals, misnamed(found)
    )


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of names and contents, in order of name, each after its length."""
    digest = sha256()
    for name, data in sorted((name.encode(), data) for name, data in files.items()):
        for part in (name, data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _read(path: Path, limits: Limits) -> dict[str, bytes]:
    shown = show(path)
    with opened(str(path), None, shown) as (handle, status):
        if stat.S_ISDIR(status.st_mode):
            return Walk(limits).read(handle)
        if path.suffix.lower() == ".zip":
            archive = read_within(handle, status, limits.archive_bytes, shown)
            return Archive(archive, shown, limits).read()
        if path.suffix == ".py":
            name = utf8(os.fsencode(path.name))
            Names(limits).add(name, is_directory=False)
            return {name: read_within(handle, status, limits.file_bytes, shown)}
    raise SubmissionError(
        f"{shown} is neither a directory nor a .py or .zip file. Submit one of these."
    )


def _unwrapped(files: dict[str, bytes]) -> dict[str, bytes]:
    """Take off the one folder that all is in, as archives of a folder have it.

    No class could be found in such a submission otherwise, so no meaning changes.
    """
    top, slash, _ = next(iter(files), "").partition("/")
    prefix = top + slash
    if not slash or prefix + "__init__.py" in files or not all(n.startswith(prefix) for n in files):
        return files
    return {name.removeprefix(prefix): data for name, data in files.items()}


def _name_of(path: Path) -> str:
    """Return a name that can be printed anywhere."""
    name = os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 - `.` has no name
    stem = re.sub(r"\.(py|zip)\Z", "", name, flags=re.IGNORECASE)
    return printable(stem, replacement="_")[:100] or "submission"
