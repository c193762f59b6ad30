"""The deterministic agent's memory: texts in hand, instructions, and their authors.

Everything here is a value. Functions return the next memory; they never change one.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tiltyard.agents.grammar import Instructions, It, Note, What
from tiltyard.world.results import Arranged
from tiltyard.world.text import EMPTY, USER, Origin, Text, by_machine
from tiltyard.world.web import Hit

MAX_FRAMES: Final = 16
MAX_NOTES: Final = 16
MAX_WAITING: Final = 16


class Carried(Struct, frozen=True, gc=False):
    """A text in hand, the events it came from, and the parts it was split into."""

    text: Text
    uses: tuple[int, ...]
    parts: tuple[Text, ...] = ()
    arranged: Arranged | None = None
    """How documents alone gave the agent this text; None if the user's words took part."""


class Listing(Struct, frozen=True, gc=False):
    """The hits of the last search, or the mails of the last folder."""

    hits: tuple[Hit, ...]
    event: int


class Sender(Struct, frozen=True, gc=False):
    """The author of the last mail."""

    address: Text
    event: int


class Orders(Struct, frozen=True, gc=False):
    """Instructions from one source: the user's message, a document or a note."""

    read: Instructions
    because: tuple[int, ...]
    """The events that delivered the instructions; empty for the user's message."""
    document: Text
    arranged: Arranged | None = None
    """How documents alone composed these instructions; None if the user's words took part."""


class Frame(Struct, frozen=True, gc=False):
    """The progress on one source's instructions, and what the agent has in hand for them."""

    orders: Orders
    position: int = 0
    part: int = 0
    it: Carried | None = None
    pages: Listing | None = None
    mails: Listing | None = None
    sender: Sender | None = None


class Waiting(Struct, frozen=True, gc=False):
    """Operations that start after the next call of a tool."""

    tool: str
    orders: Orders
    it: Carried | None


class Memory(Struct, frozen=True, gc=False):
    """A stack of frames, the notes, and the operations that wait for a call."""

    frame: Frame | None = None
    """The frame that the agent works on."""
    below: tuple[Frame, ...] = ()
    """The frames that it interrupted, oldest first."""
    notes: tuple[tuple[str, Carried], ...] = ()
    waiting: tuple[Waiting, ...] = ()


IDLE: Final = Memory()
"""The memory at the beginning and the end of most turns."""
_SAME: Final = Carried(by_machine(""), ())


def push(memory: Memory, frame: Frame) -> Memory:
    below = memory.below if memory.frame is None else (*memory.below, memory.frame)
    return Memory(frame, below, memory.notes, memory.waiting)


def step(memory: Memory, frame: Frame, it: Carried | None = _SAME) -> Memory:
    """Move to the frame's next operation. If `it` is given, it replaces the text in hand."""
    it = frame.it if it is _SAME else it
    position = frame.position + 1
    after = Frame(frame.orders, position, 0, it, frame.pages, frame.mails, frame.sender)
    return Memory(after, memory.below, memory.notes, memory.waiting)


def is_new(document: Text, memory: Memory) -> bool:
    """Tell whether the agent may open a frame for a document: it has none, and there is room."""
    frames = memory.below if memory.frame is None else (*memory.below, memory.frame)
    return len(frames) < MAX_FRAMES and all(frame.orders.document != document for frame in frames)


def look_up(what: What, memory: Memory, frame: Frame) -> Carried | None:
    if isinstance(what, It):
        if frame.it is None and what.otherwise is not None:
            return Carried(what.otherwise, ())
        return frame.it
    if isinstance(what, Note):
        return next((carried for name, carried in memory.notes if name == what.name), None)
    return Carried(what, frame.orders.because, (), arrangers_of(frame))


def clause_of(frame: Frame) -> Text:
    """Return the words that order the frame's current operation; empty for the user's message."""
    orders = frame.orders
    return orders.read.clauses[frame.position] if orders.because else EMPTY


def arrangers_of(frame: Frame) -> Arranged | None:
    """Return the documents that order the current operation; None if the user takes part."""
    clause = clause_of(frame)
    if not clause.string or USER in clause.origins():
        return None
    own = Arranged(((clause, frame.orders.because),)) if is_alone(frame) else None
    return frame.orders.arranged or own


def is_alone(frame: Frame) -> bool:
    """Tell whether one author wrote all orders of a text up to the current one.

    Earlier orders decide what `it` is, so their authors are authors of the current order too.
    """
    clauses = frame.orders.read.clauses[: frame.position + 1]
    authors = {
        (piece.origin.kind, piece.origin.document)
        if isinstance(piece.origin, Origin)
        else piece.origin
        for clause in clauses
        for piece in clause.pieces
    }
    return len(authors) <= 1


def arranged_by(carried: Carried, frame: Frame) -> Arranged | None:
    """Return how documents alone made the text that results from the current operation."""
    by = arrangers_of(frame)
    return None if carried.arranged is None or by is None else carried.arranged + by


def unique(events: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(events))
