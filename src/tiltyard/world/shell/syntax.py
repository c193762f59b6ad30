r"""The parser of command lines: words, quotes, operators, redirects.

The parser knows nothing about the commands. It turns a plain string into spans, so that one parse
serves all lines with the same characters; `bind` then takes the labels of each word from the line.

Supported: words; single quotes; double quotes with the escapes `\"`, `\\`, `\$` and `` \` ``;
backslash escapes; a backslash before a line end, which continues the line; a leading `~` or `~/`;
the patterns `*`, `?` and `[...]`; the operators `|`, `>`, `>>`, `<`, `;`, `&&`. Adjacent quoted and
unquoted parts form one word. The parser ignores line ends around the whole line.

Some syntax is an error because it has a meaning in a real shell but not in this one: `$` before
anything that a shell expands, backticks, `&`, `||`, `(`, `)`, `;;`, `<<`, `<>`, `>|`, `>&`, a
number before a redirect, a line end between commands, a comment, `[:class:]`, and an operator
without a command or target. A single `$`, braces and `!` are plain characters. A word with `://` is
a URL, in which `?` is not a pattern.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from tiltyard.world.paths import HOME
from tiltyard.world.results import ParsedWord, ToolError
from tiltyard.world.shell.glob import Component, PatternError, read_pattern
from tiltyard.world.text import Piece, Text, by_machine, cut, join

MAX_PIPELINE_COMMANDS: Final = 8
MAX_LINE_COMMANDS: Final = 16
MAX_REMEMBERED_CHARS: Final = 512
"""Longer lines are not cached: a parse is many times the size of its line."""

Span = tuple[int, int]


class Word(Struct, frozen=True, gc=False):
    """A word without its quotes, and the positions of its characters in the line."""

    string: str
    spans: tuple[Span, ...]
    parsed: ParsedWord
    """For the record: the word as it is written, and its value if it is no pattern."""
    pattern: tuple[Component, ...] | None = None
    at_home: bool = False
    """True if the word began with `~`, which `bind` replaces by the home directory."""


class Redirect(Struct, frozen=True, gc=False):
    operator: str
    target: Word


class Command(Struct, frozen=True, gc=False):
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    has_patterns: bool


class Pipeline(Struct, frozen=True, gc=False):
    commands: tuple[Command, ...]
    conditional: bool
    """True if the pipeline follows `&&`."""


Line = tuple[Pipeline, ...]


class Refusal(Struct, frozen=True, gc=False):
    """A syntax error, and the characters that cause it."""

    error: ToolError
    detail: str


class _SyntaxError(Exception):
    def __init__(self, error: ToolError, detail: str) -> None:
        super().__init__(error, detail)
        self.refusal = Refusal(error, detail[:100])


def read_line(string: str) -> Line | Refusal:
    """Parse a command line. Parses of short lines are cached."""
    return _remembered(string) if len(string) <= MAX_REMEMBERED_CHARS else _read(string)


def bind(line: Text, words: Sequence[Word]) -> list[Text]:
    """Return the words of a parsed line with the labels of `line`."""
    if len(line.pieces) == 1:
        origin, base = line.pieces[0].origin, line.pieces[0].start
        texts = [
            Text(
                word.string[len(HOME) :] if word.at_home else word.string,
                tuple([Piece(origin, base + start, base + stop) for start, stop in word.spans]),
            )
            for word in words
        ]
    else:
        parts = iter(cut(line, [span for word in words for span in word.spans]))
        texts = [join(next(parts) for _ in word.spans) for word in words]
    for index, word in enumerate(words):
        if word.at_home:
            texts[index] = join((_AT_HOME, texts[index]))
    return texts


def _read(string: str) -> Line | Refusal:
    line = _LineBuilder()
    try:
        for item in _Lexer(string).items():
            line.take(item)
        return line.finish()
    except _SyntaxError as error:
        return error.refusal
    except PatternError as error:
        return Refusal(ToolError.BAD_SYNTAX, str(error))


_remembered = lru_cache(maxsize=1024)(_read)


class _LineBuilder:
    """Combines words and operators into commands, pipelines and the line."""

    def __init__(self) -> None:
        self._pipelines: list[Pipeline] = []
        self._commands: list[Command] = []
        self._words: list[Word] = []
        self._redirects: list[Redirect] = []
        self._awaited = ""
        """The redirect that still needs its target."""
        self._conditional = False
        self._count = 0

    def take(self, item: Word | str) -> None:
        if isinstance(item, Word):
            if self._awaited:
                self._redirects.append(Redirect(self._awaited, item))
                self._awaited = ""
            else:
                self._words.append(item)
        elif self._awaited:
            raise _SyntaxError(ToolError.BAD_SYNTAX, item)
        elif item in _REDIRECTS:
            self._awaited = item
        else:
            self._end_command(item)
            if item != "|":
                self._end_pipeline(conditional=item == "&&")

    def finish(self) -> Line:
        if self._awaited:
            raise _SyntaxError(ToolError.BAD_SYNTAX, self._awaited)
        if self._words or self._redirects:
            self._end_command("")
            self._end_pipeline(conditional=False)
        elif self._commands or self._conditional:
            raise _SyntaxError(ToolError.BAD_SYNTAX, "|" if self._commands else "&&")
        if not self._pipelines:
            raise _SyntaxError(ToolError.EMPTY_COMMAND, "")
        return tuple(self._pipelines)

    def _end_command(self, operator: str) -> None:
        words, redirects = tuple(self._words), tuple(self._redirects)
        if not words and not redirects:
            raise _SyntaxError(ToolError.BAD_SYNTAX, operator)
        has_patterns = any(word.pattern is not None for word in words)
        self._commands.append(Command(words, redirects, has_patterns))
        self._words.clear()
        self._redirects.clear()
        self._count += 1
        if len(self._commands) > MAX_PIPELINE_COMMANDS or self._count > MAX_LINE_COMMANDS:
            first = words[0] if words else redirects[0].target
            raise _SyntaxError(ToolError.PIPE_TOO_DEEP, first.string)

    def _end_pipeline(self, *, conditional: bool) -> None:
        self._pipelines.append(Pipeline(tuple(self._commands), self._conditional))
        self._commands.clear()
        self._conditional = conditional


class _Lexer:
    """Splits a line into words and operators, in one pass."""

    def __init__(self, string: str) -> None:
        self._string = string
        self._position = 0
        self._last = len(string.rstrip(" \t\n"))
        """The end of the line without trailing whitespace."""
        self._parts: list[tuple[int, int, bool]] = []
        """The parts of the current word: start, stop, and whether the part is unquoted."""

    def items(self) -> Iterator[Word | str]:
        string = self._string
        first = len(string) - len(string.lstrip(" \t\n"))
        while True:
            blanks = _BLANKS.match(string, self._position)
            assert blanks is not None
            self._position = blanks.end()
            if self._position >= len(string):
                return
            char = string[self._position]
            if char == "\n" and not first < self._position < self._last:
                self._position += 1
            elif char in "\n#":
                raise _SyntaxError(ToolError.BAD_SYNTAX, char)
            elif (operator := _OPERATOR.match(string, self._position)) is not None:
                if operator[0] not in _OPERATORS:
                    raise _SyntaxError(ToolError.BAD_SYNTAX, operator[0])
                self._position = operator.end()
                yield operator[0]
            else:
                yield self._word()

    def _word(self) -> Word:
        string, size = self._string, len(self._string)
        self._parts = []
        start = self._position
        tilde = _TILDE.match(string, start) is not None
        self._position += tilde
        while self._position < size and (char := string[self._position]) not in _WORD_ENDS:
            if char == "'":
                stop = string.find("'", self._position + 1)
                if stop < 0:
                    raise _SyntaxError(ToolError.BAD_QUOTING, char)
                self._add(self._position + 1, stop, unquoted=False)
                self._position = stop + 1
            elif char == '"':
                self._read_double_quotes()
            elif char == "\\":
                self._read_escape()
            elif char in "$`":
                self._read_sign(_EXPANSION)
            else:
                run = _PLAIN.match(string, self._position)
                assert run is not None
                self._add(self._position, run.end(), unquoted=True)
                self._position = run.end()
        number = string[start : self._position]
        after = string[self._position : self._position + 1]
        if after in ("<", ">") and number.isascii() and number.isdigit():
            raise _SyntaxError(ToolError.BAD_SYNTAX, number + after)
        return _make_word(string, self._parts, (start, self._position), tilde=tilde)

    def _read_double_quotes(self) -> None:
        string = self._string
        self._position += 1
        while True:
            run = _PLAIN_IN_QUOTES.match(string, self._position)
            assert run is not None
            self._add(self._position, run.end(), unquoted=False)
            self._position = run.end()
            char = string[self._position : self._position + 1]
            if char == '"':
                self._position += 1
                return
            if not char:
                raise _SyntaxError(ToolError.BAD_QUOTING, '"')
            if char != "\\":
                self._read_sign(_EXPANSION_IN_QUOTES)
            elif string[self._position + 1 : self._position + 2] in _ESCAPED_IN_QUOTES:
                self._read_escape()
            else:
                self._add(self._position, self._position + 1, unquoted=False)
                self._position += 1

    def _read_escape(self) -> None:
        """Take the character after a backslash as it is; drop a backslash and a line end."""
        behind = self._position + 1
        if behind >= len(self._string):
            raise _SyntaxError(ToolError.BAD_QUOTING, "\\")
        if self._string[behind] != "\n":
            self._add(behind, behind + 1, unquoted=False)
        self._position = behind + 1

    def _read_sign(self, expansion: re.Pattern[str]) -> None:
        """Take a plain dollar sign; refuse one that a shell would expand."""
        meaning = expansion.match(self._string, self._position)
        if meaning is not None:
            raise _SyntaxError(ToolError.BAD_SYNTAX, meaning[0])
        self._add(self._position, self._position + 1, unquoted=False)
        self._position += 1

    def _add(self, start: int, stop: int, *, unquoted: bool) -> None:
        if start < stop:
            self._parts.append((start, stop, unquoted))


def _make_word(
    string: str, parts: list[tuple[int, int, bool]], written: Span, *, tilde: bool
) -> Word:
    spans: list[Span] = []
    for start, stop, _ in parts:
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], stop
        else:
            spans.append((start, stop))
    home = HOME if tilde else ""
    value = home + "".join(string[start:stop] for start, stop in spans)
    wild = any(unquoted and _WILD.search(string, start, stop) for start, stop, unquoted in parts)
    pattern = None
    if wild and "://" not in value:
        chars = [(char, False) for char in home]
        chars += (
            (char, unquoted) for start, stop, unquoted in parts for char in string[start:stop]
        )
        pattern = read_pattern(chars)
    parsed = ParsedWord(string[slice(*written)], (value,))
    return Word(value, tuple(spans), parsed, pattern, tilde)


_AT_HOME: Final = by_machine(HOME)
_REDIRECTS: Final = frozenset({"<", ">", ">>"})
_OPERATORS: Final = _REDIRECTS | {"|", ";", "&&"}
_WORD_ENDS: Final = frozenset(" \t\n|&;<>()")
_ESCAPED_IN_QUOTES: Final = frozenset('"\\$`\n')
_BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)*")
_OPERATOR: Final = re.compile(r"&&|\|\||;;|>>|>\||>&|<<|<>|<&|[|&;<>()]")
_PLAIN: Final = re.compile(r"[^ \t\n|&;<>()'\"\\$`]+")
_PLAIN_IN_QUOTES: Final = re.compile(r"[^\"\\$`]*")
_EXPANSION: Final = re.compile(r"`|\$[A-Za-z0-9_{(\[*@#?$!'\"-]")
_EXPANSION_IN_QUOTES: Final = re.compile(r"`|\$[A-Za-z0-9_{(\[*@#?$!-]")
_TILDE: Final = re.compile(r"~(?=[/ \t\n|&;<>()]|\Z)")
_WILD: Final = re.compile(r"[*?\[]")
