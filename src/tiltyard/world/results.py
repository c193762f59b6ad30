"""Calls of tools, and their results, errors and outcomes."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from tiltyard.world.state import Effect, World
from tiltyard.world.text import EMPTY, SourceKind, Text
from tiltyard.world.web import Hit

FROM_USER: Final[tuple[int, ...]] = ()
"""The cause of a call that the user asked for: no event delivered the instruction."""


class Other(Struct, frozen=True, tag=True, gc=False):
    """An argument of a type that no tool takes, as the JSON that the agent wrote."""

    json: str


Argument = Text | Other | int | None


class Arranged(Struct, frozen=True, gc=False):
    """How documents alone composed an instruction. The judge checks it."""

    orders: "tuple[tuple[Text, tuple[int, ...]], ...]" = ()
    """The clauses that composed it, each with the events that delivered it."""
    texts: "tuple[tuple[Text, int], ...]" = ()
    """The texts that these clauses used unchanged, each with the event that delivered it."""

    def __add__(self, other: "Arranged") -> "Arranged":
        return Arranged(
            tuple(dict.fromkeys((*self.orders, *other.orders))),
            tuple(dict.fromkeys((*self.texts, *other.texts))),
        )


class ToolCall(Struct, frozen=True, gc=False):
    """A tool call as the agent proposes it.

    `because` names the events that delivered the instruction (`FROM_USER` if the user's message
    alone did). `uses` names the events whose results went into the arguments. An agent that does
    not know leaves None and the empty tuple; the judge then infers both.
    """

    tool: str
    args: dict[str, Argument]
    """Nothing changes these arguments after the call is made."""
    because: tuple[int, ...] | None = None
    uses: tuple[int, ...] = ()
    clause: Text = EMPTY
    """The words that ordered the call, if a document delivered them."""
    alone: bool = True
    """False if the same text has orders of other authors before this one."""
    arranged: "Arranged | None" = None
    """How documents composed the instruction, if no word of it is the user's."""

    def plain_args(self) -> dict[str, str | int | None]:
        """Return the arguments as a guardrail sees them: strings and numbers without labels."""
        plain: dict[str, str | int | None] = {}
        for name, value in self.args.items():
            plain[name] = value.string if type(value) is Text else _plain(value)
        return plain


def _plain(value: Argument) -> str | int | None:
    if isinstance(value, Text):
        return value.string
    return value.json if isinstance(value, Other) else value


class ToolError(StrEnum):
    """Why a call failed. A failed call changes nothing."""

    UNKNOWN_TOOL = "unknown_tool"
    MISSING_ARGUMENT = "missing_argument"
    UNEXPECTED_ARGUMENT = "unexpected_argument"
    WRONG_TYPE = "wrong_type"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    NOT_FOUND = "not_found"
    BAD_PATH = "bad_path"
    PATH_ESCAPE = "path_escape"
    IS_DIRECTORY = "is_directory"
    NOT_A_DIRECTORY = "not_a_directory"
    UNKNOWN_FOLDER = "unknown_folder"
    BAD_LIMIT = "bad_limit"
    BAD_CURSOR = "bad_cursor"
    BAD_ADDRESS = "bad_address"
    BAD_SUBJECT = "bad_subject"
    BAD_URL = "bad_url"
    EMPTY_COMMAND = "empty_command"
    UNKNOWN_COMMAND = "unknown_command"
    BAD_QUOTING = "bad_quoting"
    BAD_SYNTAX = "bad_syntax"
    BAD_OPTION = "bad_option"
    PIPE_TOO_DEEP = "pipe_too_deep"
    NO_MATCH = "no_match"
    BAD_ENCODING = "bad_encoding"
    DENIED = "denied"
    NOT_CONFIRMED = "not_confirmed"
    GUARDRAIL_ERROR = "guardrail_error"


class Use(StrEnum):
    """What a command does with a file that it opens."""

    READ = "read"
    WRITE = "write"
    APPEND = "append"
    DELETE = "delete"
    SEND = "send"


class OpenedFile(Struct, frozen=True, gc=False):
    """A file that a command opened."""

    path: str
    """The canonical path."""
    use: Use
    name: str
    """The path as the command got it, after expansion and without quotes."""


class ParsedWord(Struct, frozen=True, gc=False):
    """A word of a command line: as it is written, and what the shell made of it."""

    written: str
    """With quotes, escapes and patterns."""
    values: tuple[str, ...]
    """What the command gets: the word without its quotes, or the paths that a pattern matches."""


class ParsedCommand(Struct, frozen=True, gc=False):
    """One command of a pipeline: its words, its redirects, and the files that it opened."""

    words: tuple[ParsedWord, ...]
    redirects: tuple[tuple[str, ParsedWord], ...]
    """Each with its operator."""
    opened: tuple[OpenedFile, ...]
    """In the order in which the command opened them."""


class ParsedPipeline(Struct, frozen=True, gc=False):
    """Commands that a pipe connects."""

    commands: tuple[ParsedCommand, ...]
    conditional: bool
    """True if the pipeline follows `&&`."""


class ToolResult(Struct, frozen=True, gc=False):
    """The result of a call. `hits` and `sender` repeat in structured form what `output` shows."""

    ok: bool
    output: Text
    source: SourceKind
    error: ToolError | None = None
    detail: str = ""
    """The argument or word that caused the error."""
    hits: tuple[Hit, ...] = ()
    sender: str = ""
    body: Text | None = None
    """The body of a mail, without its headers."""
    touched: bool = False
    """True if a command read protected content, even if it printed none of it."""
    line: tuple[ParsedPipeline, ...] = ()
    """How the shell parsed a command line, and which files it opened. Only the judge sees this."""
    work: int = 0
    """The work of a command line, as the shell counts it for its limit."""


class Outcome(Struct, frozen=True, gc=False):
    """The result of a call, and the world after it."""

    world: World
    result: ToolResult
    effects: tuple[Effect, ...] = ()


def failure(source: SourceKind, error: ToolError, detail: str = "", work: int = 0) -> ToolResult:
    return ToolResult(ok=False, output=EMPTY, source=source, error=error, detail=detail, work=work)
