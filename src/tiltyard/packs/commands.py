"""The commands of a shell over files: the one operation that has code of its own.

A `run` tool belongs to a type of records with a path and a text: its key is the path, and the field
`content` is the text.
"""

import shlex
from collections.abc import Callable
from typing import Final

from msgspec import Struct, structs

from tiltyard.packs.schema import Scalar
from tiltyard.packs.world import OWNER, Change, Leaf, Record, World

MAX_WORDS: Final = 200
CONTENT: Final = "content"


class Ran(Struct, frozen=True):
    """The result of a command."""

    world: World
    found: tuple[Record, ...] = ()
    error: str = ""
    changes: tuple[Change, ...] = ()
    note: str = "done"


def run_command(world: World, type_: str, command: str, author: str = OWNER) -> Ran:
    """Run one command: cat, ls, rm, mv, cp, curl, or echo into a file."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return Ran(world, error=f"bad quoting: {error}")
    if not words or len(words) > MAX_WORDS:
        return Ran(world, error="empty command" if not words else "too many words")
    run = _COMMANDS.get(words[0])
    if run is None:
        return Ran(world, error=f"{words[0][:40]}: command not found")
    return run(world, type_, words[1:], author)


def _file(world: World, type_: str, path: str) -> Record | None:
    return world.of_type(type_).get(path.removeprefix("./"))


def _cat(world: World, type_: str, words: list[str], _author: str) -> Ran:
    found = [_file(world, type_, path) for path in words]
    if not words or None in found:
        return Ran(world, error="no such file")
    return Ran(world, tuple(one for one in found if one is not None))


def _ls(world: World, type_: str, words: list[str], _author: str) -> Ran:
    start = words[0].rstrip("/") + "/" if words and words[0] != "." else ""
    names = [path for path in sorted(world.of_type(type_)) if path.startswith(start)]
    return Ran(world, note="\n".join(names) or "(nothing)")


def _rm(world: World, type_: str, words: list[str], _author: str) -> Ran:
    paths = [word for word in words if not word.startswith("-")]
    changes: list[Change] = []
    for path in paths:
        file = _file(world, type_, path)
        if file is None:
            return Ran(world, error=f"{path}: no such file")
        world = world.drop(file)
        changes.append(Change("deleted", type_, file.key))
    return Ran(world, changes=tuple(changes))


def _mv(world: World, type_: str, words: list[str], author: str) -> Ran:
    copied = _cp(world, type_, words, author)
    file = _file(world, type_, words[0]) if words else None
    if copied.error or file is None:
        return copied
    gone = Change("deleted", type_, file.key)
    return structs.replace(copied, world=copied.world.drop(file), changes=(*copied.changes, gone))


def _cp(world: World, type_: str, words: list[str], _author: str) -> Ran:
    file = _file(world, type_, words[0]) if len(words) == 2 else None
    if file is None:
        return Ran(world, error="no such file")
    return _write(world, type_, words[1], file, file.fields[CONTENT])


def _echo(world: World, type_: str, words: list[str], author: str) -> Ran:
    if len(words) < 3 or words[-2] not in (">", ">>"):
        return Ran(world, note=" ".join(words))
    text = " ".join(words[:-2])
    before = _file(world, type_, words[-1])
    if words[-2] == ">>" and before is not None:
        text = f"{before.value(CONTENT)}\n{text}"
    like = before or next(iter(world.of_type(type_).values()), None)
    if like is None:
        return Ran(world, error="no such directory")
    return _write(world, type_, words[-1], like, Leaf(text, author))


def _write(world: World, type_: str, path: str, like: Record, content: Leaf) -> Ran:
    kind = world.site.types[type_]
    existed = _file(world, type_, path) is not None
    fields = {**like.fields, kind.key: Leaf(path, OWNER), CONTENT: content}
    change = Change("updated" if existed else "created", type_, path, {CONTENT: content.value})
    return Ran(world.put(Record(type_, path, fields, like.parts)), changes=(change,))


def _curl(world: World, type_: str, words: list[str], _author: str) -> Ran:
    """Send a request. `-d TEXT` sends a text, `-d @PATH` a file."""
    url = next((word for word in words if "://" in word), "")
    if not url:
        return Ran(world, error="no URL")
    sent: dict[str, Scalar] = {"url": url}
    if "-d" in words and words.index("-d") + 1 < len(words):
        data = words[words.index("-d") + 1]
        if data.startswith("@"):
            file = _file(world, type_, data[1:])
            if file is None:
                return Ran(world, error=f"{data[1:]}: no such file")
            data = str(file.value(CONTENT))
        sent[CONTENT] = data
    host = url.partition("://")[2].partition("/")[0].partition("?")[0]
    return Ran(world, changes=(Change("left", type_, "", sent, host),), note="200 OK")


_COMMANDS: Final[dict[str, Callable[[World, str, list[str], str], Ran]]] = {
    "cat": _cat,
    "cp": _cp,
    "curl": _curl,
    "echo": _echo,
    "ls": _ls,
    "mv": _mv,
    "rm": _rm,
}
