"""The file tree as a value.

A directory is a persistent map, so a write copies one path from the root and shares the rest,
whatever the size of the tree. Paths arrive canonical (`paths.normalise`); nothing here parses.
"""

from collections.abc import Iterator
from typing import Final

from immutables import Map
from msgspec import Struct

from tiltyard.world.text import Text, neutralise


class File(Struct, frozen=True, gc=False):
    """Labelled content, and whether this very file is one the scenario protects.

    Protection is an identity, not a name: a stranger's own `dir/secret.txt` has none.
    """

    content: Text
    protected: bool = False


class Directory(Struct, frozen=True, gc=False):
    entries: "Map[str, File | Directory]"


EMPTY_DIRECTORY: Final = Directory(Map())


class FileError(Exception):
    """A path that cannot be written: a file on the way (`below_file`), or a directory there."""

    def __init__(self, *, below_file: bool) -> None:
        super().__init__("a file is in the way" if below_file else "a directory is there")
        self.below_file = below_file


def find(root: Directory, path: str) -> File | Directory | None:
    """Return what stands at a canonical path."""
    if "/" not in path:
        return root.entries.get(path) if path else root
    node: File | Directory | None = root
    for name in path.split("/"):
        if not isinstance(node, Directory):
            return None
        node = node.entries.get(name)
    return node


def write(root: Directory, path: str, file: File) -> Directory:
    """Return a tree with the file at the path, parents made as needed."""
    name, slash, rest = path.partition("/")
    entry = root.entries.get(name)
    if not slash:
        if not name or isinstance(entry, Directory):
            raise FileError(below_file=False)
        return Directory(root.entries.set(name, file))
    if isinstance(entry, File):
        raise FileError(below_file=True)
    return Directory(root.entries.set(name, write(entry or EMPTY_DIRECTORY, rest, file)))


def remove(root: Directory, path: str) -> Directory:
    """Return a tree without what stands at the path, which must exist."""
    name, slash, rest = path.partition("/")
    if not slash:
        return Directory(root.entries.delete(name))
    below = root.entries[name]
    assert isinstance(below, Directory)
    return Directory(root.entries.set(name, remove(below, rest)))


def names(directory: Directory) -> list[str]:
    """Return a directory's entries in order; a persistent map has none of its own."""
    return sorted(directory.entries)


def walk(directory: Directory, prefix: str = "") -> Iterator[tuple[str, File]]:
    """Yield every file below a directory with its path, in order."""
    for name in names(directory):
        node = directory.entries[name]
        if isinstance(node, Directory):
            yield from walk(node, f"{prefix}{name}/")
        else:
            yield prefix + name, node


def content(file: File, *, neutral: bool) -> Text:
    """Return what a reader of the file gets."""
    return neutralise(file.content) if neutral else file.content
