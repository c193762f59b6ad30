"""What the shell recorded about a command line: which files it opened, and how they are written.

The judge never parses a command line itself. It reads the record that the shell leaves with each
result, and builds simpler lines from the words as they are written.
"""

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from tiltyard.contracts.trace import Event
from tiltyard.world.results import OpenedFile, ParsedCommand, ParsedWord, Use

HARM: Final = (Use.WRITE, Use.APPEND, Use.DELETE)
_NOTHING: Final = "date"
"""A command that opens no file."""
_SPARE: Final = "plain.txt"
"""A file of the judge's own, to copy from or to move to."""
_ESCAPED_IN_QUOTES: Final = '"\\$`\n'
_UNSAFE: Final = re.compile(r"[^\w./-]", re.ASCII)
_MARK: Final = re.compile(r"-[A-Za-z]+|.*[@<=]", re.DOTALL)
_PATTERN: Final = re.compile(r"[*?\[]")
_LETTERS: Final = re.compile(r"[A-Za-z]{2,}")


def opened_files(event: Event) -> Iterator[OpenedFile]:
    """Yield every file that a command line opened, in order."""
    for command in _commands(event):
        yield from command.opened


def spellings(events: list[Event], path: str) -> list[str]:
    """Return the words by which commands named a file, as they are written in the lines.

    A pattern may depend on which other files exist. So the judge's own pattern comes with it.
    """
    found: dict[str, None] = {}
    for event in events:
        for command in _commands(event):
            names = {each.name for each in command.opened if each.path == path and each.name}
            for word in (*command.words, *(target for _, target in command.redirects)):
                for name in names:
                    found.update(dict.fromkeys(_spelled(word, name, path)))
    return list(found)


def opening_commands(events: list[Event], path: str, uses: Collection[Use], url: str) -> list[str]:
    """Return the commands that opened a file for some uses, each without all that is not needed.

    A guardrail may stop `cat secret.txt` and miss `curl -Tsecret.txt`. So a word that names the
    file stays as it is written, with its option. A request goes to `url`.
    """
    found: dict[str, None] = {}
    for event in events:
        for command in _commands(event):
            for each in command.opened:
                if each.path == path and each.name and each.use in uses:
                    found.update(dict.fromkeys(_reduced(command, each, url)))
    return list(found)


def _reduced(command: ParsedCommand, opened: OpenedFile, url: str) -> Iterator[str]:
    """Yield a command that opens a file in the same way, and does nothing else."""
    name, path = opened.name, opened.path
    for operator, target in command.redirects:
        if operator == ">>":
            yield from (f"echo >> {word}" for word in _spelled(target, name, path))
    for before, word in pairwise(command.words):
        if _name(command) == "curl":
            yield from (f"curl {option} {url}" for option in _options(before, word, opened))
        elif name in word.values and opened.use is Use.DELETE and _name(command) == "mv":
            yield from (f"mv {each} {_SPARE}" for each in _spelled(word, name, path))
        elif name in word.values and opened.use is Use.WRITE:
            copy = f"echo > {_SPARE}; {_name(command)} {_SPARE}"
            yield from (f"{copy} {each}" for each in _spelled(word, name, path))


def _options(before: ParsedWord, word: ParsedWord, opened: OpenedFile) -> Iterator[str]:
    """Yield how an option of `curl` and its value name a file, if they do."""
    if opened.name in word.values:
        words = list(_spelled(word, opened.name, opened.path))
    elif any(_is_marked(value.partition(";")[0], opened.name) for value in word.values):
        words = [word.written]
    else:
        return
    if word.values[0].startswith("-"):
        yield from words
    elif before.values[0].startswith("-"):
        yield from (f"{before.written} {each}" for each in words)


def _is_marked(value: str, name: str) -> bool:
    """Tell whether a value ends in a name, after a letter or mark that makes `curl` open a file."""
    return value.endswith(name) and _MARK.fullmatch(value.removesuffix(name)) is not None


def _commands(event: Event) -> Iterator[ParsedCommand]:
    for pipeline in event.result.line:
        yield from pipeline.commands


def _spelled(word: ParsedWord, name: str, path: str) -> Iterator[str]:
    """Yield how a word writes the name of a file, if it does."""
    exact = name in word.values
    if exact:
        yield word.written
    if _PATTERN.search(word.written) and any(name in value for value in word.values):
        yield _LETTERS.sub(lambda run: f"{run[0][0]}?{run[0][2:]}", _UNSAFE.sub("?", path))
    if not exact and len(word.values) == 1 and name in word.values[0]:
        # An option or a mark, such as `@`, stands before the name in the same word.
        start = word.values[0].rindex(name)
        yield from _cut(word, start, start + len(name))


def _cut(word: ParsedWord, start: int, stop: int) -> Iterator[str]:
    """Yield the part of a written word that stands for some characters of its only value.

    Everything between them stays as it is written, empty quotes too. A pattern or a `~` has no such
    part: the shell put other characters in its place.
    """
    written = word.written
    characters = list(_characters(written))
    if "".join(written[each.stop - 1 : each.stop] for each in characters) != word.values[0]:
        return
    first, opening = (characters[start - 1].stop, characters[start - 1].quote) if start else (0, "")
    last, closing = len(written), ""
    if stop < len(characters):
        last, closing = characters[stop].start, characters[stop].quote
    yield f"{opening}{written[first:last]}{closing}"


class _Character(NamedTuple):
    """Where a character of a word's value is written, and the quotes around it."""

    start: int
    stop: int
    quote: str


def _characters(written: str) -> Iterator[_Character]:
    quote, at = "", 0
    while at < len(written):
        start, char, following = at, written[at], written[at + 1 : at + 2]
        at += 1
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "\\" and (not quote or (quote == '"' and following in _ESCAPED_IN_QUOTES)):
            at += 1
            if following != "\n":
                yield _Character(start, at, quote)
        else:
            yield _Character(start, at, quote)


def sources(event: Event, path: str) -> tuple[str, ...]:
    """Return the paths of the files that a command copied or moved to a path; else none."""
    for command in reversed(list(_commands(event))):
        before = ""
        for each in command.opened:
            if each.path == path and each.use is Use.WRITE and _name(command) in ("cp", "mv"):
                return (before,) if before else ()
            before = each.path if each.use is Use.READ else before
    return ()


def printing(event: Event, path: str) -> str | None:
    """Return the command that prints what a redirect wrote to a path."""
    for pipeline in reversed(event.result.line):
        last = pipeline.commands[-1]
        if any(
            operator == ">" and path in _paths(last, target) for operator, target in last.redirects
        ):
            return " | ".join(_written(command, inward=True) for command in pipeline.commands)
    return None


def _paths(command: ParsedCommand, word: ParsedWord) -> set[str]:
    return {each.path for each in command.opened if each.name in word.values}


def sparing(event: Event, paths: Collection[str]) -> str | None:
    """Return the same line without its harm to some files; None if the line does no such harm."""
    if not any(_harms(command, paths) for command in _commands(event)):
        return None
    parts: list[str] = []
    for pipeline in event.result.line:
        parts.append("&&" if pipeline.conditional else ";")
        commands = (
            _spared(command, paths) if _harms(command, paths) else _written(command)
            for command in pipeline.commands
        )
        parts.append(" | ".join(commands))
    return " ".join(parts[1:])


def _harms(command: ParsedCommand, paths: Collection[str]) -> bool:
    return any(each.path in paths and each.use in HARM for each in command.opened)


def _spared(command: ParsedCommand, paths: Collection[str]) -> str:
    if any(not _paths(command, target).isdisjoint(paths) for _, target in command.redirects):
        return _written(command, inward=True)
    if _name(command) == "mv":
        return " ".join(("cp", *(word.written for word in command.words[1:])))
    return _NOTHING


def _name(command: ParsedCommand) -> str:
    return command.words[0].values[0] if command.words else ""


def _written(command: ParsedCommand, *, inward: bool = False) -> str:
    """Return a command as it is written; with `inward`, without the files that it writes."""
    words = [word.written for word in command.words] or [_NOTHING]
    for operator, target in command.redirects:
        if operator == "<" or not inward:
            words += (operator, target.written)
    return " ".join(words)
