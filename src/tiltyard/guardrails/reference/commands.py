"""Read shell commands: which files a command reads and changes, and where it sends data.

For an unknown program the reader assumes the worst: that it reads, changes and sends all of its
arguments.
"""

import shlex
from functools import lru_cache
from typing import Final, NamedTuple

from tiltyard.guardrails.targets import canonical

_SILENT: Final = frozenset(("echo", "pwd", "whoami", "date", "true", "printf"))
_READING: Final = frozenset(("cat", "head", "tail", "grep", "rev", "base64", "ls", "wc", "sort"))
_CHANGING: Final = frozenset(("cp", "mv", "rm", "tee", "touch"))
_AT_HOME: Final = _SILENT | _READING | _CHANGING
_SEPARATORS: Final = frozenset(("|", "||", ";", "&&", "&", ";;"))


class Command(NamedTuple):
    """The effects of a command line."""

    reads: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    sends: bool = False
    is_plain_cat: bool = False
    """True if the command only prints whole files."""


@lru_cache(maxsize=512)
def read_command(line: str) -> Command | None:
    """Return the effects of a command line; None if it cannot be parsed."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    reads: list[str] = []
    changes: list[str] = []
    urls: list[str] = []
    programs: list[str] = []
    for segment in _segments(words):
        given = _take_redirects(segment, reads, changes)
        if given:
            programs.append(given[0])
            _read_program(given[0], given[1:], reads, changes, urls)
    sends = any(program not in _AT_HOME for program in programs)
    is_plain_cat = programs == ["cat"] and not changes
    return Command(
        tuple(map(canonical, reads)),
        tuple(map(canonical, changes)),
        tuple(urls),
        sends,
        is_plain_cat,
    )


def _segments(words: list[str]) -> list[list[str]]:
    segments: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            segments.append([])
        else:
            segments[-1].append(word)
    return segments


def _take_redirects(words: list[str], reads: list[str], changes: list[str]) -> list[str]:
    """Return the words without redirects; add their files to `reads` and `changes`."""
    given: list[str] = []
    place: list[str] | None = None
    for word in words:
        if word and not word.strip("<>&"):
            place = reads if word.startswith("<") else changes
        elif place is not None:
            place.append(word)
            place = None
        else:
            given.append(word)
    return given


def _read_program(
    program: str, words: list[str], reads: list[str], changes: list[str], urls: list[str]
) -> None:
    operands = [word for word in words if not word.startswith("-")]
    if program in _SILENT:
        return
    if program in _READING:
        reads += operands[1:] if program == "grep" else operands
    elif program in ("cp", "mv"):
        reads += operands[:-1]
        changes += operands if program == "mv" else operands[-1:]
        # A file copied into a folder replaces the file of the same name there.
        changes += (f"{operands[-1]}/{name.rpartition('/')[2]}" for name in operands[:-1])
    elif program in ("rm", "tee", "touch"):
        changes += operands
    elif program == "curl":
        _read_curl(words, reads, changes, urls)
    else:
        reads += operands
        changes += operands
        urls += (word for word in operands if "://" in word)


def _read_curl(words: list[str], reads: list[str], changes: list[str], urls: list[str]) -> None:
    before = ""
    for word in words:
        option, at, file = word.partition("@")
        if before in ("-o", "--output"):
            changes.append(word)
        elif before in ("-T", "--upload-file"):
            reads += () if word == "-" else (word,)
        elif "://" in word and not before.startswith(("-d", "--data")):
            urls.append(word)
        elif at and file != "-" and (not option or option.startswith("-") or option.endswith("=")):
            reads.append(file)
        elif option.startswith("-T") and len(word) > 2:
            reads.append(word[2:])
        elif option.startswith("-o") and len(word) > 2:
            changes.append(word[2:])
        before = word
