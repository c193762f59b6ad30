"""Opens submissions: checks a directory, file or archive, and writes it to a new directory.

This package owns the reading, the limits, and the messages of every refusal. It imports and runs
nothing of a submission. A separate process finds the classes in the syntax trees. The jail finds
out if they can be imported and constructed.

The limits are small enough to read everything into memory. `open_submission` writes files only
after all of them are accepted, so a refusal leaves nothing behind.
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
    """A submission that was accepted."""

    name: str
    root: Path
    """The directory that contains its files."""
    files: tuple[SubmittedFile, ...]
    digest: str
    """SHA-256, in hex, of all names and contents: see `digest_of`."""
    modules: dict[Part, Module]
    """The file to load for a part, if there is exactly one."""
    rivals: dict[Part, tuple[Module, ...]]
    """All candidates for a part, if there are several."""
    otherwise: dict[Part, str] = {}
    """A hint for a part without a file: which class to rename."""

    def module(self, part: Part) -> Module:
        """Return the module to load for a part, or raise `SubmissionError`."""
        if part in self.modules:
            return self.modules[part]
        raise SubmissionError(missing((part,), self.rivals, self.otherwise))


def open_submission(path: Path, into: Path, limits: Limits = LIMITS) -> Submission:
    """Read a directory, a `.py` or a `.zip` file, check all of it, and write it to `into`.

    `into` must be new, or an empty directory. Links are not followed, and nothing is imported. If
    anything is wrong, this raises `SubmissionError`, and `into` stays as it was.
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
    """Return the SHA-256 of names and contents in order of name, each with its length before it."""
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
    """Remove the folder that contains all files, as archives of a folder have it.

    No class would be found in such a submission otherwise.
    """
    top, slash, _ = next(iter(files), "").partition("/")
    prefix = top + slash
    if not slash or prefix + "__init__.py" in files or not all(n.startswith(prefix) for n in files):
        return files
    return {name.removeprefix(prefix): data for name, data in files.items()}


def _name_of(path: Path) -> str:
    """Return the submission's name with printable characters only."""
    name = os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 - Path(".") has no name
    stem = re.sub(r"\.(py|zip)\Z", "", name, flags=re.IGNORECASE)
    return printable(stem, replacement="_")[:100] or "submission"
