"""Read pack files. Errors name the file, the line where that is known, and what to do."""

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tiltyard.packs.problems import schema_problems, toml_problems
from tiltyard.packs.schema import Goal, Name, Pack, Task, TaskName

MAX_BYTES: Final = 1_000_000
_T = TypeVar("_T")


class PackError(ValueError):
    """A pack file is wrong."""


def read_pack(text: str, shown: str) -> Pack:
    """Read a pack from TOML. `shown` names the file in errors."""
    return _read(text, shown, Pack)


def _read(text: str, shown: str, kind: type[_T]) -> _T:
    if len(text) > MAX_BYTES:
        raise PackError(f"{shown}: larger than {MAX_BYTES:,} bytes; split the pack")
    problems = [*toml_problems({shown: text})]
    if problems:
        raise PackError(problems[0])
    try:
        return msgspec.convert(tomllib.loads(text), kind)
    except msgspec.ValidationError:
        raise PackError("\n".join(schema_problems({shown: text}, kind))) from None


class _Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    tasks: dict[TaskName, Task]


def read_tasks(text: str, shown: str) -> dict[str, Task]:
    """Read the tasks of a pack from a TOML text of their own."""
    return _read(text, shown, _Tasks).tasks


class _Goals(Struct, frozen=True, forbid_unknown_fields=True):
    goals: dict[Name, Goal]


def read_goals(text: str, shown: str) -> dict[str, Goal]:
    """Read the goals of a pack from a TOML text of their own."""
    return _read(text, shown, _Goals).goals


def pack_files(path: Path) -> dict[str, str]:
    """Return the texts of a pack's files: `pack.toml`, and `tasks.toml` if there is one."""
    files = [path / "pack.toml", path / "tasks.toml"] if path.is_dir() else [path]
    if not files[0].is_file():
        raise PackError(
            f"{files[0]}: no such file; `tiltyard pack new {path}` writes one, and the shipped "
            f"packs are {', '.join(shipped_packs())}"
        )
    return {str(file): read_text(file) for file in files if file.is_file()}


def read_text(file: Path) -> str:
    """Return the text of a pack's file."""
    if file.stat().st_size > MAX_BYTES:
        raise PackError(f"{file}: larger than {MAX_BYTES:,} bytes; split the pack")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PackError(f"{file}: not UTF-8 text; save the file as UTF-8") from None


def load_pack(path: Path) -> Pack:
    """Read a pack's directory. The error lists every problem of its format."""
    files = pack_files(path)
    problems = [*toml_problems(files)] or schema_problems(files)
    if problems:
        raise PackError("\n".join(problems))
    return read_pack("\n".join(files.values()), str(path))


@cache
def shipped_packs() -> dict[str, Pack]:
    """Return the packs that Tiltyard ships, by name."""
    root = resources.files("tiltyard.packs") / "data"
    found: dict[str, Pack] = {}
    for directory in sorted(root.iterdir(), key=lambda one: one.name):
        texts = [
            (directory / name).read_text(encoding="utf-8")
            for name in ("pack.toml", "tasks.toml")
            if (directory / name).is_file()
        ]
        if texts:
            pack = read_pack("\n".join(texts), directory.name)
            found[pack.name] = pack
    return found
