"""The file tree as an immutable value.

A directory is a persistent map, so a write copies one path from the root and shares the rest,
whatever the size of the tree. All paths must be canonical (`paths.normalise`).
"""

from collections.abc import Iterator
from typing import Final

from immutables import Map
from msgspec import Struct

from tiltyard.world.text import Text, neutralise


class File(Struct, frozen=True, gc=False):
    """Labelled content, and whether the scenario protects this file.

    Protection belongs to the file, not to its name: a new `dir/secret.txt` is not protected.
    """

    content: Text
    protected: bool = False


class Directory(Struct, frozen=True, gc=False):
    entries: "Map[str, File | Directory]"


EMPTY_DIRECTORY: Final = Directory(Map())


class FileError(Exception):
    """A path cannot be written: a parent is a file (`below_file`), or it is a directory."""

    def __init__(self, *, below_file: bool) -> None:
        super().__init__("a file is in the way" if below_file else "a directory is there")
        self.below_file = below_file


def find(root: Directory, path: str) -> File | Directory | None:
    """Return the file or directory at `path`."""
    if "/" not in path:
        return root.entries.get(path) if path else root
    node: File | Directory | None = root
    for name in path.split("/"):
        if not isinstance(node, Directory):
            return None
        node = node.entries.get(name)
    return node


def write(root: Directory, path: str, file: File) -> Directory:
    """Return a tree with `file` at `path`, and with all missing parents."""
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
    """Return a tree without the file or directory at `path`, which must exist."""
    name, slash, rest = path.partition("/")
    if not slash:
        return Directory(root.entries.delete(name))
    below = root.entries[name]
    assert isinstance(below, Directory)
    return Directory(root.entries.set(name, remove(below, rest)))


def names(directory: Directory) -> list[str]:
    """Return the names in a directory in sorted order: a persistent map has no order."""
    return sorted(directory.entries)


def walk(directory: Directory, prefix: str = "") -> Iterator[tuple[str, File]]:
    """Yield every file below a directory with its path, sorted."""
    for name in names(directory):
        node = directory.entries[name]
        if isinstance(node, Directory):
            yield from walk(node, f"{prefix}{name}/")
        else:
            yield prefix + name, node


def content(file: File, *, neutral: bool) -> Text:
    """Return the content of a file, blanked out if `neutral`."""
    return neutralise(file.content) if neutral else file.content
