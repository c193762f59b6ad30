"""The operations that a text can order, as data.

If an operation is a `ToolCall`, the agent makes that call unchanged. Every literal is a slice of
the text it comes from, and keeps its author.
"""

from typing import Final

from msgspec import Struct

from tiltyard.world.results import ToolCall
from tiltyard.world.text import Encoding, Text

LAST: Final = -1


class It(Struct, frozen=True, gc=False):
    """The text in hand. `otherwise` replaces it when there is none."""

    otherwise: Text | None = None


class Note(Struct, frozen=True, gc=False):
    """The note with this name."""

    name: str


What = It | Note | Text


class Recipient(Struct, frozen=True, gc=False):
    """An address that is known only when the mail is sent: the owner, or the last mail's sender."""

    is_owner: bool


class OpenHit(Struct, frozen=True, gc=False):
    """Open a page from the last search."""

    rank: int


class ReadHit(Struct, frozen=True, gc=False):
    """Read a mail from the last listing."""

    rank: int
    sender: str
    subject: str


class Carry(Struct, frozen=True, gc=False):
    """Make a call with the text in hand as one argument."""

    tool: str
    args: dict[str, Text]
    slot: str
    what: What
    to: Recipient | None = None


class Recode(Struct, frozen=True, gc=False):
    """Encode or decode a text; without an encoding, only take it in hand."""

    what: What
    encoding: Encoding | None
    decode: bool = False


class Split(Struct, frozen=True, gc=False):
    """Cut a text into parts, which are then sent one by one."""

    what: What
    parts: int


class Remember(Struct, frozen=True, gc=False):
    what: What
    name: str


class Follow(Struct, frozen=True, gc=False):
    """Follow the instructions in texts."""

    whats: tuple[What, ...]


class Wait(Struct, frozen=True, gc=False):
    """Follow instructions later: after the next successful call of a tool."""

    tool: str
    instructions: "Instructions"


Operation = ToolCall | OpenHit | ReadHit | Carry | Recode | Split | Remember | Follow | Wait


class Instructions(Struct, frozen=True, gc=False):
    """The operations of a text, in order, and the clause of each."""

    operations: tuple[Operation, ...]
    spans: tuple[tuple[int, int], ...]
    """Start and end of each clause in the text."""
    clauses: tuple[Text, ...]
    """The clauses themselves, with their authors."""

    def __bool__(self) -> bool:
        return bool(self.operations)
