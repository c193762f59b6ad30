"""What a tool is asked and what it answers: calls, results, errors, outcomes."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from tiltyard.world.state import Effect, World
from tiltyard.world.text import EMPTY, SourceKind, Text
from tiltyard.world.web import Hit

FROM_USER: Final[tuple[int, ...]] = ()
"""The cause of a call that the user's own words asked for: no event had to deliver them."""


class Other(Struct, frozen=True, tag=True, gc=False):
    """An argument that no tool takes, as the JSON an agent wrote."""

    json: str


Argument = Text | Other | int | None


class Arranged(Struct, frozen=True, gc=False):
    """How an order was put together without a word of the user's; the judge looks it over."""

    orders: "tuple[tuple[Text, tuple[int, ...]], ...]" = ()
    """The clauses that did it, each with the events that delivered it."""
    texts: "tuple[tuple[Text, int], ...]" = ()
    """What they took whole, each with the event that delivered it."""

    def __add__(self, other: "Arranged") -> "Arranged":
        return Arranged(
            tuple(dict.fromkeys((*self.orders, *other.orders))),
            tuple(dict.fromkeys((*self.texts, *other.texts))),
        )


class ToolCall(Struct, frozen=True, gc=False):
    """A tool call as the agent proposes it.

    `because` names the events that delivered the instruction (`FROM_USER` when the user's
    message alone did), `uses` those whose results went into the arguments. An agent that cannot
    know leaves None and the empty tuple, and the judge infers.
    """

    tool: str
    args: dict[str, Argument]
    """Never changed once the call is made."""
    because: tuple[int, ...] | None = None
    uses: tuple[int, ...] = ()
    clause: Text = EMPTY
    """The words that ordered it, when a document delivered them."""
    alone: bool = True
    """False when orders of others stood before it, in one text with it."""
    arranged: "Arranged | None" = None
    """Where documents alone put these words together: out of what, and by which of their words."""

    def plain_args(self) -> dict[str, str | int | None]:
        """Return the arguments as a guardrail sees them: strings and numbers, no labels."""
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


class ToolResult(Struct, frozen=True, gc=False):
    """What a call returned. `hits` and `sender` are what a reader sees at a glance in `output`."""

    ok: bool
    output: Text
    source: SourceKind
    error: ToolError | None = None
    detail: str = ""
    """Which argument or word the error is about."""
    hits: tuple[Hit, ...] = ()
    sender: str = ""
    body: Text | None = None
    """Of a mail: what it says below its headers."""
    touched: bool = False
    """True when a command read something secret on its way, whatever it printed."""


class Outcome(Struct, frozen=True, gc=False):
    """A call's result, and the world after it."""

    world: World
    result: ToolResult
    effects: tuple[Effect, ...] = ()


def failure(source: SourceKind, error: ToolError, detail: str = "") -> ToolResult:
    return ToolResult(ok=False, output=EMPTY, source=source, error=error, detail=detail)
