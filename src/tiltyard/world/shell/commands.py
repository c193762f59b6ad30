"""The commands of the shell, except `curl`.

A command is a function from a session, its arguments and its input to its output. Differences from
the real commands: `grep` searches for a plain substring and has no regular expressions; `head -c`
counts characters; `base64` never wraps, and `-w 0` only omits the line end; `ls` always lists one
name per line, and labels names as the machine's words; `cp` and `mv` take only files and create
missing parents; `rm -r` of the root, in any spelling, empties it.
"""

from collections.abc import Callable
from typing import Final

from tiltyard.world import files
from tiltyard.world.files import Directory
from tiltyard.world.paths import HOME
from tiltyard.world.results import ToolError, Use
from tiltyard.world.shell.session import (
    NO_OPTIONS,
    WORK_PER_REVERSED_LINE,
    WORK_PER_TEXT_LINE,
    Session,
    ShellError,
    join_stream,
    letters,
    read_options,
    resolve,
)
from tiltyard.world.shell.syntax import Span
from tiltyard.world.text import (
    EMPTY,
    Derived,
    Encoding,
    Text,
    by_machine,
    cut,
    decode,
    encode,
    join,
    slice_text,
)

Run = Callable[[Session, list[Text], Text], Text]

TODAY: Final = "2026-01-05"

_NEWLINE: Final = by_machine("\n")
_SPACE: Final = by_machine(" ")
_COLON: Final = by_machine(":")

_LS_FLAGS: Final = letters("1alh")
_GREP_FLAGS: Final = letters("ivncF")
_HEAD_VALUES: Final = {"-n": "n", "--lines": "n", "-c": "c", "--bytes": "c"}
_BASE64_FLAGS: Final = {"-d": "d", "-D": "d", "--decode": "d"}
_BASE64_VALUES: Final = {"-w": "w", "--wrap": "w"}
_MOVE_FLAGS: Final = letters("f")
_RM_FLAGS: Final = {**letters("fr"), "-R": "r", "--force": "f", "--recursive": "r"}


def _echo(_session: Session, args: list[Text], _stdin: Text) -> Text:
    """Print the arguments. Only a leading `-n` is an option, as in POSIX."""
    end = [_NEWLINE]
    while args and args[0].string == "-n":
        end = []
        args = args[1:]
    parts: list[Text] = []
    for arg in args:
        parts += (arg, _SPACE)
    return join(parts[:-1] + end)


def _cat(session: Session, args: list[Text], stdin: Text) -> Text:
    inputs = _read_inputs(session, read_options(args, NO_OPTIONS).operands, stdin)
    return join_stream([text for _, text in inputs], "cat")


def _ls(session: Session, args: list[Text], _stdin: Text) -> Text:
    operands = read_options(args, _LS_FLAGS).operands or [by_machine(".")]
    listed: list[Text] = []
    directories: list[tuple[Text, Directory]] = []
    for operand in sorted(operands, key=str):
        node = session.find(operand.string)
        if node is None:
            raise ShellError(ToolError.NOT_FOUND, operand.string)
        if isinstance(node, Directory):
            directories.append((operand, node))
        else:
            listed += (operand, _NEWLINE)
    for operand, directory in directories:
        if len(operands) > 1:
            listed += (_NEWLINE,) if listed else ()
            listed += (operand, by_machine(":\n"))
        names = "".join(name + "\n" for name in files.names(directory))
        session.spend(len(names) + 1, operand.string)
        listed.append(by_machine(names))
    return join_stream(listed, "ls")


def _says(string: str) -> Run:
    """Return a command that takes no arguments and always prints `string`."""
    output = by_machine(string + "\n")

    def say(_session: Session, args: list[Text], _stdin: Text) -> Text:
        if args:
            raise ShellError(ToolError.BAD_OPTION, args[0].string)
        return output

    return say


def _head(session: Session, args: list[Text], stdin: Text) -> Text:
    unit, count = "n", 10
    if args and args[0].string[:1] == "-" and args[0].string[1:].isdecimal():
        count = _read_count(args[0].string[1:])
        args = args[1:]
    options = read_options(args, NO_OPTIONS, _HEAD_VALUES)
    for name, value in options.values:
        unit, count = name, _read_count(value.string)
    inputs = _read_inputs(session, options.operands, stdin)
    parts: list[Text] = []
    for name_text, text in inputs:
        if len(inputs) > 1:
            parts += (_NEWLINE,) if parts else ()
            parts += (by_machine("==> "), name_text, by_machine(" <==\n"))
        stop = count if unit == "c" else _end_of_line(text.string, count)
        parts.append(slice_text(text, 0, stop))
    return join_stream(parts, "head")


def _read_count(string: str) -> int:
    if not (string.isascii() and string.isdecimal() and len(string) <= 9):
        raise ShellError(ToolError.BAD_OPTION, string)
    return int(string)


def _end_of_line(string: str, count: int) -> int:
    """Return where the first `count` lines end."""
    stop = 0
    for _ in range(count):
        stop = string.find("\n", stop) + 1
        if not stop:
            return len(string)
    return stop


def _grep(session: Session, args: list[Text], stdin: Text) -> Text:
    options = read_options(args, _GREP_FLAGS)
    if not options.operands:
        raise ShellError(ToolError.MISSING_ARGUMENT, "grep")
    pattern, *names = options.operands
    if "\n" in pattern.string:  # POSIX takes several lines as several patterns; this grep has one
        raise ShellError(ToolError.BAD_OPTION, pattern.string)
    inputs = _read_inputs(session, names, stdin)
    parts: list[Text] = []
    session.succeeded = False
    for name, text in inputs:
        label = (name, _COLON) if len(inputs) > 1 else ()
        spans = _line_spans(session, text.string, "grep")
        chosen = _select(text.string, spans, pattern.string, options.flags)
        session.succeeded = session.succeeded or bool(chosen)
        if "c" in options.flags:
            parts += (*label, by_machine(f"{len(chosen)}\n"))
            continue
        lines = cut(text, [spans[index] for index in chosen])
        for index, line in zip(chosen, lines, strict=True):
            parts += label
            if "n" in options.flags:
                parts.append(by_machine(f"{index + 1}:"))
            parts.append(line)
            if not line.string.endswith("\n"):
                parts.append(_NEWLINE)
    return join_stream(parts, "grep")


def _select(string: str, spans: list[Span], needle: str, flags: set[str]) -> list[int]:
    """Return the indices of the lines that contain `needle`; with `-v`, of all other lines."""
    inverted = "v" in flags
    if "i" not in flags:
        return [
            index
            for index, (start, stop) in enumerate(spans)
            if (string.find(needle, start, stop) >= 0) is not inverted
        ]
    needle = needle.casefold()
    return [
        index
        for index, (start, stop) in enumerate(spans)
        if (needle in string[start:stop].casefold()) is not inverted
    ]


def _base64(session: Session, args: list[Text], stdin: Text) -> Text:
    options = read_options(args, _BASE64_FLAGS, _BASE64_VALUES)
    for _, width in options.values:
        if width.string != "0":
            raise ShellError(ToolError.BAD_OPTION, width.string)
    if len(options.operands) > 1:
        raise ShellError(ToolError.BAD_OPTION, options.operands[1].string)
    ((name, text),) = _read_inputs(session, options.operands, stdin)
    if "d" not in options.flags:
        encoded = encode(text, Encoding.BASE64)
        return encoded if options.values or not text.string else join((encoded, _NEWLINE))
    # Without an added line end, the text equals the one that was encoded here.
    plain = decode(slice_text(text, 0, len(text.string.rstrip())), Encoding.BASE64)
    if plain is None:
        raise ShellError(ToolError.BAD_ENCODING, name.string or "base64")
    return plain


def _rev(session: Session, args: list[Text], stdin: Text) -> Text:
    parts: list[Text] = []
    for _, text in _read_inputs(session, read_options(args, NO_OPTIONS).operands, stdin):
        bounds: list[Span] = []
        spans = _line_spans(session, text.string, "rev")
        session.spend(WORK_PER_REVERSED_LINE * len(spans), "rev")
        for start, stop in spans:
            end = stop - text.string.endswith("\n", start, stop)
            bounds += ((start, end), (end, stop))
        slices = cut(text, bounds)
        for line, ending in zip(slices[::2], slices[1::2], strict=True):
            parts += (_reverse(line), ending)
    return join_stream(parts, "rev")


def _reverse(line: Text) -> Text:
    """Reverse a line. A line reversed twice gets back its original labels."""
    if len(line.pieces) == 1:
        origin = line.pieces[0].origin
        if isinstance(origin, Derived) and len(origin.source.string) == len(line.string):
            undone = decode(line, Encoding.REVERSE)
            if undone is origin.source:
                return undone
    return encode(line, Encoding.REVERSE)


def _line_spans(session: Session, string: str, command: str) -> list[Span]:
    """Return the spans of the lines of a text, each with its newline."""
    session.spend(WORK_PER_TEXT_LINE * (string.count("\n") + 1), command)
    spans: list[Span] = []
    start = 0
    while start < len(string):
        stop = string.find("\n", start) + 1 or len(string)
        spans.append((start, stop))
        start = stop
    return spans


def _read_inputs(session: Session, names: list[Text], stdin: Text) -> list[tuple[Text, Text]]:
    """Return the named files, each with its name. `-`, or no name at all, means the input."""
    if not names:
        return [(EMPTY, stdin)]
    return [(name, stdin if name.string == "-" else session.read(name.string)) for name in names]


def _cp(session: Session, args: list[Text], _stdin: Text) -> Text:
    for source, target in _read_moves(session, args, "cp"):
        if resolve(source) != resolve(target):
            session.note(source, Use.READ)
            session.write(target, session.find_file(source).content)
    return EMPTY


def _mv(session: Session, args: list[Text], _stdin: Text) -> Text:
    for source, target in _read_moves(session, args, "mv"):
        path = resolve(source)
        if path != resolve(target):
            file = session.find_file(source)
            session.note(source, Use.READ)
            session.write(target, file.content)
            session.delete(path, file, source)
    return EMPTY


def _read_moves(session: Session, args: list[Text], command: str) -> list[tuple[str, str]]:
    """Return the source and target path of each file to copy or move."""
    operands = [operand.string for operand in read_options(args, _MOVE_FLAGS).operands]
    if len(operands) < 2:
        raise ShellError(ToolError.MISSING_ARGUMENT, command)
    *sources, target = operands
    if not isinstance(session.find(target), Directory):
        if len(sources) > 1 or target.endswith("/"):
            raise ShellError(ToolError.NOT_A_DIRECTORY, target)
        session.find_file(sources[0])
        return [(sources[0], target)]
    moves: list[tuple[str, str]] = []
    for source in sources:
        session.find_file(source)
        moves.append((source, f"{target}/{resolve(source).rpartition('/')[2]}"))
    return moves


def _rm(session: Session, args: list[Text], _stdin: Text) -> Text:
    options = read_options(args, _RM_FLAGS)
    forced = "f" in options.flags
    if not options.operands and not forced:
        raise ShellError(ToolError.MISSING_ARGUMENT, "rm")
    for operand in options.operands:
        word = operand.string
        node = session.find(word)
        if isinstance(node, Directory) and "r" in options.flags:
            _remove_directory(session, resolve(word), node)
        elif node is not None or not forced:
            session.delete(resolve(word), session.find_file(word), word)
    return EMPTY


def _remove_directory(session: Session, path: str, directory: Directory) -> None:
    for below, file in files.walk(directory, path + "/" if path else ""):
        session.delete(below, file)
    tree = files.remove(session.world.files, path) if path else files.EMPTY_DIRECTORY
    session.world = session.world.with_files(tree)


COMMANDS: Final[dict[str, Run]] = {
    "echo": _echo,
    "cat": _cat,
    "ls": _ls,
    "pwd": _says(HOME),
    "whoami": _says("user"),
    "date": _says(TODAY),
    "head": _head,
    "grep": _grep,
    "base64": _base64,
    "rev": _rev,
    "cp": _cp,
    "mv": _mv,
    "rm": _rm,
}
