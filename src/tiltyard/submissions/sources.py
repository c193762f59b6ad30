"""Finds the classes of a submission in its sources, without running them.

`parse.py` reads the syntax trees in another process. This module starts it, and reads its output.
"""

import re
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from tiltyard.contracts.tracks import CLASSES, Part
from tiltyard.submissions.names import Limits, SubmissionError, show

COMPILED: Final = (".dll", ".dylib", ".pyc", ".pyd", ".pyo", ".so")
"""Python would import some of these instead of the source of the same name."""

_COOKIE: Final = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_UTF8_COOKIES: Final = frozenset({b"utf-8", b"utf8", b"utf-8-sig"})
_PYTHON: Final = f"Python {sys.version_info.major}.{sys.version_info.minor}"
_PROGRAM: Final = str(Path(__file__).absolute().with_name("parse.py"))


class Module(Struct, frozen=True):
    """The place of a class: a top-level file, or the `__init__.py` of a top-level package."""

    file: str
    line: int


class Parsed(Struct, frozen=True):
    """What `parse.py` reports about one file."""

    classes: dict[str, int] = {}
    """Maps a name to its line."""
    misnamed: dict[str, tuple[str, int]] = {}
    """Maps a wanted name to a class that probably should have it, and its line."""
    error: str = ""
    line: int = 0


def find_classes(files: Mapping[str, bytes], limits: Limits) -> dict[str, Parsed]:
    """Check every source, and return the classes of those that a match could load."""
    for name in files:
        if name.lower().endswith(COMPILED):
            raise SubmissionError(f"{show(name)} is compiled. Submit sources only.")
    sources = {name: data for name, data in files.items() if name.endswith(".py")}
    if not sources:
        raise SubmissionError(
            "There is no Python file in the submission. " + _advice(tuple(CLASSES))
        )
    for name, data in sources.items():
        _check_source(data, show(name), limits)
    if sum(map(len, sources.values())) > limits.sources_bytes:
        raise SubmissionError(
            f"All Python files together are larger than {limits.sources_bytes} bytes. "
            "Move data out of them, into files of their own."
        )
    parsed = _parse(sources, limits)
    return {name: found for name, found in parsed.items() if _can_be_loaded(name)}


def _can_be_loaded(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    return not folder or ("/" not in folder and file == "__init__.py")


def _check_source(data: bytes, shown: str, limits: Limits) -> None:
    if len(data) > limits.source_bytes:
        raise SubmissionError(
            f"{shown} is larger than {limits.source_bytes} bytes, too large for a source. "
            "Move data out of it, into a file of its own."
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = _line(data, error.start)
        raise SubmissionError(f"{shown}:{line}: this is not UTF-8. Save it as UTF-8.") from error
    if b"\0" in data:
        line = _line(data, data.index(b"\0"))
        raise SubmissionError(f"{shown}:{line}: there is a NUL byte in the source. Remove it.")
    # Stricter than Python, which ignores an encoding comment in line 2 after code.
    for number, text in enumerate(re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2], 1):
        cookie = _COOKIE.match(text.removeprefix(b"\xef\xbb\xbf"))
        if cookie and cookie[1].lower().replace(b"_", b"-") not in _UTF8_COOKIES:
            declared = show(cookie[1].decode())
            raise SubmissionError(
                f"{shown}:{number}: the encoding is declared as {declared}. "
                "Save the file as UTF-8 and remove the declaration."
            )


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _parse(sources: Mapping[str, bytes], limits: Limits) -> dict[str, Parsed]:
    """Parse the sources in a process of its own: a short source can take minutes and gigabytes.

    The process runs isolated, without site packages, and cannot import from the submission. It is
    started by path, since importing this package would take longer.
    """
    command = [sys.executable, "-I", "-S", "-B", "-W", "ignore", _PROGRAM]
    command += [str(limits.parse_memory_bytes), str(limits.parse_cpu_seconds), *CLASSES.values()]
    request = b"".join(struct.pack("<L", len(data)) + data for data in sources.values())
    try:
        done = subprocess.run(  # noqa: S603 - our own program; the submission is only its input
            command,
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            timeout=4 * limits.parse_cpu_seconds,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    hello, *lines = output.split(b"\n")[:-1] or [b""]
    if hello != b"ready":
        raise RuntimeError(f"cannot parse the sources: {sys.executable} does not start")
    answers = [msgspec.json.decode(line, type=Parsed) for line in lines]
    found = dict(zip(sources, answers, strict=False))
    for name, parsed in found.items():
        if parsed.line:
            why = show(parsed.error).rstrip(".")
            raise SubmissionError(
                f"{show(name)}:{parsed.line}: not valid {_PYTHON}: {why}. Correct it."
            )
        if parsed.error:
            _refuse_nested(name)
    if len(found) < len(sources):
        _refuse_nested(list(sources)[len(found)])
    return found


def _refuse_nested(name: str) -> NoReturn:
    raise SubmissionError(
        f"{show(name)} is nested too deeply, or is too large, to be parsed. Write it more simply."
    )


def choose(
    found: Mapping[str, Parsed],
) -> tuple[dict[Part, Module], dict[Part, tuple[Module, ...]]]:
    """Return the module to load for each part, and all candidates where that is not clear."""
    modules: dict[Part, Module] = {}
    rivals: dict[Part, tuple[Module, ...]] = {}
    for part, class_name in CLASSES.items():
        places = {
            file: Module(file, parsed.classes[class_name])
            for file, parsed in found.items()
            if class_name in parsed.classes
        }
        conventional = places.get(f"{part}.py")
        if conventional or len(places) == 1:
            modules[part] = conventional or next(iter(places.values()))
        elif places:
            rivals[part] = tuple(places.values())
    return modules, rivals


def misnamed(found: Mapping[str, Parsed]) -> dict[Part, str]:
    """Return a hint for each part that has a class with the wrong name."""
    return {
        part: f"{show(file)}:{line}: class {show(name)} inherits from {wanted}Base. "
        f"Call it {wanted}."
        for part, wanted in CLASSES.items()
        for file, parsed in found.items()
        if wanted in parsed.misnamed
        for name, line in [parsed.misnamed[wanted]]
    }


def missing(
    parts: tuple[Part, ...],
    rivals: Mapping[Part, tuple[Module, ...]],
    otherwise: Mapping[Part, str],
) -> str:
    for part in parts:
        if part in rivals:
            places = " and ".join(f"{show(at.file)}:{at.line}" for at in rivals[part][:5])
            return (
                f"Class {CLASSES[part]} is in {places}, and only one can be played. "
                f"Name that file {part}.py."
            )
    for part in parts:
        if part in otherwise:
            return otherwise[part]
    names = " or ".join(CLASSES[part] for part in parts)
    return f"There is no class {names} in the submission. {_advice(parts)}"


def _advice(parts: tuple[Part, ...]) -> str:
    where = " or ".join(f"class {CLASSES[part]} in {part}.py" for part in parts)
    return f"Define {where}, at the top level of both file and submission."
