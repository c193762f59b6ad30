"""Sealed tasks: what an organizer plays instead of the public tasks.

A sealed directory has a subdirectory for each pack. With `tasks.toml`, it replaces the tasks of the
shipped pack of that name, and with `goals.toml` its goals. With `pack.toml`, it is a private pack.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from tiltyard.packs.load import (
    PackError,
    load_pack,
    read_goals,
    read_tasks,
    read_text,
    shipped_packs,
)
from tiltyard.packs.schema import Goal, Pack, Task

FINGERPRINT_DIGITS: Final = 16
MIN_TASKS: Final = 100
"""An official score needs so many sealed tasks."""
_FILES: Final = ("pack.toml", "tasks.toml", "goals.toml")


class Sealed(Struct, frozen=True):
    """Packs with an organizer's tasks."""

    packs: dict[str, Pack]
    fingerprint: str
    """A public name for these tasks: a hash of the files."""


def read_sealed(directory: Path) -> Sealed:
    """Read a directory of sealed tasks. Shipped packs without sealed tasks keep their tools."""
    if not directory.is_dir():
        raise PackError(f"{directory}: no such directory; --sealed needs one with PACK/tasks.toml")
    packs = {name: structs.replace(pack, tasks={}) for name, pack in shipped_packs().items()}
    folders = [one for one in sorted(directory.iterdir()) if _files_of(one)]
    if not folders:
        raise PackError(f"{directory}: no sealed tasks; expected files such as bank/tasks.toml")
    digest = sha256()
    for folder in folders:
        pack = _read_folder(folder, packs)
        packs[pack.name] = pack
        for file in _files_of(folder):
            data = file.read_bytes()
            digest.update(f"{folder.name}/{file.name} {len(data)}\n".encode() + data)
    return Sealed(packs, digest.hexdigest()[:FINGERPRINT_DIGITS])


def is_sealed(directory: Path) -> bool:
    """Return whether a directory has sealed tasks in its subdirectories, and none of its own."""
    if not directory.is_dir() or _files_of(directory):
        return False
    return any(_files_of(one) for one in directory.iterdir() if one.is_dir())


def read_sealed_pack(folder: Path) -> tuple[Pack, dict[str, str]] | None:
    """Read sealed tasks and goals of one shipped pack, and return the texts of their files too.

    Returns None if the folder has none, or has a pack of its own.
    """
    files = _files_of(folder)
    if folder.resolve().name not in shipped_packs() or not files or files[0].name == "pack.toml":
        return None
    return _read_folder(folder, shipped_packs()), {str(one): read_text(one) for one in files}


def count_tasks(sealed: Sealed) -> int:
    """Return the number of sealed tasks."""
    return sum(len(pack.tasks) for pack in sealed.packs.values())


def write_tasks(tasks: Mapping[str, Task]) -> str:
    """Return tasks as the text of a `tasks.toml`."""
    return "\n".join(_section(f"tasks.{name}", task) for name, task in tasks.items())


def write_goals(goals: Mapping[str, Goal]) -> str:
    """Return goals as the text of a `goals.toml`."""
    return "\n".join(_section(f"goals.{name}", goal) for name, goal in goals.items())


def _section(name: str, item: Task | Goal) -> str:
    table = msgspec.to_builtins(item)
    lines = [f"{key} = {_toml(value)}" for key, value in table.items() if value not in _EMPTY]
    return "\n".join([f"[{name}]", *lines, ""])


_EMPTY: Final[tuple[object, ...]] = ({}, [], None, False)


def _toml(value: Any) -> str:
    """Return a value as TOML on one line. TOML's strings and numbers are those of JSON."""
    if isinstance(value, dict):
        inside = [f"{key} = {_toml(one)}" for key, one in value.items() if one not in _EMPTY]
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return msgspec.json.encode(value).decode()


def _files_of(folder: Path) -> list[Path]:
    return [folder / name for name in _FILES if (folder / name).is_file()]


def _read_folder(folder: Path, packs: Mapping[str, Pack]) -> Pack:
    if (folder / "pack.toml").is_file():
        if (folder / "goals.toml").is_file():
            raise PackError(f"{folder}: a private pack has its goals in pack.toml, not goals.toml")
        return load_pack(folder)
    if folder.resolve().name not in packs:
        raise PackError(
            f"{folder}: there is no pack {folder.name}; add its pack.toml, or use the name of a "
            f"shipped pack: {', '.join(shipped_packs())}"
        )
    pack = packs[folder.resolve().name]
    tasks, goals = folder / "tasks.toml", folder / "goals.toml"
    if tasks.is_file():
        pack = structs.replace(pack, tasks=read_tasks(read_text(tasks), str(tasks)))
    if goals.is_file():
        pack = structs.replace(pack, goals=read_goals(read_text(goals), str(goals)))
    return pack
