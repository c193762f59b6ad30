"""The state that the commands of one shell line share.

A session has the current world, limits the work, gives access to files and parses options. A
command that fails raises `ShellError`, and the shell drops the whole session.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tiltyard.world import files
from tiltyard.world.files import Directory, File
from tiltyard.world.paths import PathError, normalise
from tiltyard.world.results import OpenedFile, ToolError, Use
from tiltyard.world.state import Deleted, Effect, Posted, World, Wrote
from tiltyard.world.text import Text, join, slice_text

MAX_FILE_CHARS: Final = 65_536
MAX_STREAM_CHARS: Final = 4 * MAX_FILE_CHARS
"""Limit for the input and for the output of one command."""
MAX_LINE_EFFECTS: Final = 256
MAX_LINE_WORK: Final = 8 * MAX_STREAM_CHARS
"""Limit for one command line: characters read, comparisons of names, and lines of text."""
WORK_PER_TEXT_LINE: Final = 32
WORK_PER_REVERSED_LINE: Final = 512
"""A reversed line gets a label of its own."""


class ShellError(Exception):
    """A command failed. `detail` is the word that caused the error."""

    def __init__(self, error: ToolError, detail: str) -> None:
        super().__init__(error, detail)
        self.error = error
        self.detail = detail[:100]


class Session:
    """The state of one command line while it runs."""

    __slots__ = ("effects", "line", "matched", "opened", "succeeded", "touched", "work", "world")

    def __init__(self, world: World, line: Text) -> None:
        self.world = world
        self.matched: dict[str, tuple[str, ...]] = {}
        """The paths that match each pattern of the current command, which may repeat a pattern."""
        self.touched = any(origin.protected for origin in line.origins())
        """True after any read of protected content."""
        self.line = line
        self.opened: list[OpenedFile] = []
        """The files that the current command opened."""
        self.effects: list[Effect] = []
        self.succeeded = True
        """False after a `grep` that selected no line."""
        self.work = 0

    def spend(self, work: int, word: str) -> None:
        self.work += work
        if self.work > MAX_LINE_WORK:
            raise ShellError(ToolError.TOO_LARGE, word)

    def find(self, path: str, word: str | None = None) -> File | Directory | None:
        """Return the file or directory at `path`. Errors name `word`, if given."""
        return files.find(self.world.files, resolve(path, word))

    def find_file(self, word: str) -> File:
        node = self.find(word)
        if not isinstance(node, File):
            error = ToolError.NOT_FOUND if node is None else ToolError.IS_DIRECTORY
            raise ShellError(error, word)
        return node

    def read(self, word: str, use: Use = Use.READ) -> Text:
        """Return the content of the file, blanked out if the world is neutral."""
        file = self.find_file(word)
        self.note(word, use)
        self.spend(len(file.content.string) + 1, word)
        if not self.touched:
            self.touched = any(origin.protected for origin in file.content.origins())
        return files.content(file, neutral=self.world.neutral)

    def note(self, word: str, use: Use) -> None:
        """Record that the current command opens a file."""
        self.opened.append(OpenedFile(resolve(word), use, word))

    def write(self, word: str, content: Text, use: Use = Use.WRITE) -> None:
        """Write a file as `fs.write` does: writing the same content again changes nothing."""
        if len(content.string) > MAX_FILE_CHARS:
            raise ShellError(ToolError.TOO_LARGE, word)
        before = self.find(word)
        if isinstance(before, Directory):
            raise ShellError(ToolError.IS_DIRECTORY, word)
        self.note(word, use)
        if before is not None and before.content.string == content.string:
            return
        path, after = resolve(word), File(content)
        try:
            tree = files.write(self.world.files, path, after)
        except files.FileError:
            raise ShellError(ToolError.NOT_A_DIRECTORY, word) from None
        self.world = self.world.with_files(tree)
        self._record(Wrote(path, before, after), word)

    def delete(self, path: str, file: File, word: str = "") -> None:
        self.opened.append(OpenedFile(path, Use.DELETE, word))
        self.world = self.world.with_files(files.remove(self.world.files, path))
        self._record(Deleted(path, file), path)

    def post(self, posted: Posted) -> None:
        self.world = self.world.with_posted(posted)
        self._record(posted, posted.target.host)

    def _record(self, effect: Effect, word: str) -> None:
        self.effects.append(effect)
        if len(self.effects) > MAX_LINE_EFFECTS:
            raise ShellError(ToolError.TOO_LARGE, word)


def resolve(path: str, word: str | None = None) -> str:
    """Return the canonical form of a path. Errors name `word`, if given."""
    try:
        return normalise(path)
    except PathError as error:
        kind = ToolError.PATH_ESCAPE if error.escapes else ToolError.BAD_PATH
        raise ShellError(kind, path if word is None else word) from None


def join_stream(texts: list[Text], word: str) -> Text:
    """Concatenate texts; raise before joining them if the result is too large."""
    if sum([len(text.string) for text in texts]) > MAX_STREAM_CHARS:
        raise ShellError(ToolError.TOO_LARGE, word)
    return join(texts)


class Options(Struct, frozen=True):
    """The parsed arguments of a command."""

    flags: set[str]
    values: list[tuple[str, Text]]
    """Options that take a value, in the order given."""
    operands: list[Text]


NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


def read_options(
    args: list[Text], flags: Mapping[str, str], valued: Mapping[str, str] = NO_OPTIONS
) -> Options:
    """Separate options from operands, in any order, as GNU commands do.

    The tables map each spelling of an option to the name that the command uses.
    """
    options = Options(set(), [], [])
    rest = iter(args)
    for arg in rest:
        string = arg.string
        if string == "--":
            options.operands.extend(rest)
        elif len(string) < 2 or string[0] != "-":
            options.operands.append(arg)
        elif string[1] != "-":
            _read_letters(options, arg, rest, flags, valued)
        elif string in flags:
            options.flags.add(flags[string])
        else:
            name, equals, _ = string.partition("=")
            value = slice_text(arg, len(name) + 1, len(string)) if equals else next(rest, None)
            if name not in valued or value is None:
                raise ShellError(ToolError.BAD_OPTION, string)
            options.values.append((valued[name], value))
    return options


def _read_letters(
    options: Options,
    arg: Text,
    rest: Iterator[Text],
    flags: Mapping[str, str],
    valued: Mapping[str, str],
) -> None:
    """Read a cluster such as `-sSd`. Only its last letter may take a value."""
    string = arg.string
    for index in range(1, len(string)):
        letter = "-" + string[index]
        if letter in flags:
            options.flags.add(flags[letter])
            continue
        attached = index + 1 < len(string)
        value = slice_text(arg, index + 1, len(string)) if attached else next(rest, None)
        if letter not in valued or value is None:
            raise ShellError(ToolError.BAD_OPTION, string)
        options.values.append((valued[letter], value))
        return


def letters(row: str) -> dict[str, str]:
    """Return a table that maps each letter of `row` to itself."""
    return {"-" + letter: letter for letter in row}
