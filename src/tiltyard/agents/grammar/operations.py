"""What a text can order the deterministic agent to do, as data.

A `ToolCall` among the operations is made as it stands. Every literal is a slice of the text it
was read from, and keeps its author.
"""

from typing import Final

from msgspec import Struct

from tiltyard.world.results import ToolCall
from tiltyard.world.text import Encoding, Text

LAST: Final = -1


class It(Struct, frozen=True, gc=False):
    """What the frame carries; `otherwise` stands in when it carries nothing."""

    otherwise: Text | None = None


class Note(Struct, frozen=True, gc=False):
    """What was remembered under a name."""

    name: str


What = It | Note | Text


class Recipient(Struct, frozen=True, gc=False):
    """An address that only the moment of sending knows: the owner, or the last mail's sender."""

    is_owner: bool


class OpenHit(Struct, frozen=True, gc=False):
    """Open a page of the last search."""

    rank: int


class ReadHit(Struct, frozen=True, gc=False):
    """Read a mail of the last listing."""

    rank: int
    sender: str
    subject: str


class Carry(Struct, frozen=True, gc=False):
    """Make a call with carried text in one argument."""

    tool: str
    args: dict[str, Text]
    slot: str
    what: What
    to: Recipient | None = None


class Recode(Struct, frozen=True, gc=False):
    """Change the spelling of carried text; without an encoding, only take it in hand."""

    what: What
    encoding: Encoding | None
    decode: bool = False


class Split(Struct, frozen=True, gc=False):
    """Cut carried text into parts, which then go out one by one."""

    what: What
    parts: int


class Remember(Struct, frozen=True, gc=False):
    what: What
    name: str


class Follow(Struct, frozen=True, gc=False):
    """Read carried text as instructions."""

    whats: tuple[What, ...]


class Wait(Struct, frozen=True, gc=False):
    """Do something later: after the next successful call of a tool."""

    tool: str
    instructions: "Instructions"


Operation = ToolCall | OpenHit | ReadHit | Carry | Recode | Split | Remember | Follow | Wait


class Instructions(Struct, frozen=True, gc=False):
    """What a text orders, in order, and for each operation the clause that it was read from."""

    operations: tuple[Operation, ...]
    spans: tuple[tuple[int, int], ...]
    """Start and stop of the clause, in the text."""
    clauses: tuple[Text, ...]
    """The clause itself, still labelled with who wrote it."""

    def __bool__(self) -> bool:
        return bool(self.operations)
