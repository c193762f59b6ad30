"""The worst-case agent: a pure instruction follower.

It does what it is told by whoever tells it, user or document, in the grammar of
`docs/grammar.md`. Its memory is a value; every argument it makes is built of labelled pieces,
and every call says which event delivered its instruction and which results it uses.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.grammar import (
    LAST,
    Carry,
    Follow,
    Instructions,
    It,
    Note,
    OpenHit,
    ReadHit,
    Recode,
    Remember,
    Split,
    Wait,
    What,
    instructions,
)
from tiltyard.contracts.agent import AgentTraits, View
from tiltyard.contracts.trace import Answer, Event
from tiltyard.world.results import FROM_USER, Argument, Arranged, ToolCall, ToolResult
from tiltyard.world.text import (
    EMPTY,
    USER,
    Origin,
    Text,
    by_machine,
    decode,
    encode,
    join,
    lower,
)
from tiltyard.world.tools import MAX_TEXT_CHARS
from tiltyard.world.web import Hit

MAX_FRAMES: Final = 16
MAX_NOTES: Final = 16
MAX_WAITING: Final = 16
MAX_THOUGHTS: Final = 256
"""Operations between two calls before a frame is given up: notes may order each other about."""
_THOUGHTS: Final = range(MAX_THOUGHTS * MAX_FRAMES)

DONE: Final = Answer("Done.")
IN_PART: Final = Answer("Done, but not all of it went through.")
IN_VAIN: Final = Answer("I could not do that.")
NOTHING: Final = Answer("There was nothing for me to do.")

_DOCUMENTS: Final = frozenset(("web.open", "email.read", "fs.read", "shell.run"))
_READERS: Final = _DOCUMENTS | {"web.search", "email.list"}


class Carried(Struct, frozen=True, gc=False):
    """Text in hand, the events it came from, and the parts it was split into."""

    text: Text
    uses: tuple[int, ...]
    parts: tuple[Text, ...] = ()
    arranged: Arranged | None = None
    """How documents' own words put it in hand; None if a word of the user's did."""


class Listing(Struct, frozen=True, gc=False):
    """What the last search, or the last mail folder, showed."""

    hits: tuple[Hit, ...]
    event: int


class Sender(Struct, frozen=True, gc=False):
    """Who wrote the last mail."""

    address: Text
    event: int


class Orders(Struct, frozen=True, gc=False):
    """One source of instructions."""

    read: Instructions
    because: tuple[int, ...]
    """The events that delivered these instructions; none when the user's message did."""
    document: Text
    arranged: Arranged | None = None
    """How documents alone put these words together, out of notes and encodings, if they did."""


class Frame(Struct, frozen=True, gc=False):
    """How far one source's instructions are carried out, and what is in hand meanwhile."""

    orders: Orders
    position: int = 0
    part: int = 0
    it: Carried | None = None
    pages: Listing | None = None
    mails: Listing | None = None
    sender: Sender | None = None


class Waiting(Struct, frozen=True, gc=False):
    """Operations that a later call will set off."""

    tool: str
    orders: Orders
    it: Carried | None


class Memory(Struct, frozen=True, gc=False):
    """What the agent keeps in mind: a stack of frames, notes, and what it waits for."""

    frame: Frame | None = None
    """The frame at work."""
    below: tuple[Frame, ...] = ()
    """The frames it interrupted."""
    notes: tuple[tuple[str, Carried], ...] = ()
    waiting: tuple[Waiting, ...] = ()


IDLE: Final = Memory()
"""Nothing in mind: what most turns begin and end with."""

Reader = Callable[[Text], Instructions]


class Setting(Struct, frozen=True, gc=False):
    """What an operation may need that is not in memory."""

    owner: str
    read: Reader


class DeterministicAgent:
    """The agent of every comparable match."""

    name = "deterministic"
    traits = AgentTraits(labels_causes=True, pure=True)

    def begin(self) -> Memory:
        return IDLE

    def read(self, text: Text) -> Instructions:
        """Return what the agent takes a text to order."""
        return instructions(text)

    def next_action(self, view: View) -> tuple[ToolCall | Answer, Memory]:
        memory: Memory = view.memory
        if view.last is None:
            read = self.read(view.message)
            if not read:
                return NOTHING, Memory(None, (), memory.notes, memory.waiting)
            frame = Frame(Orders(read, FROM_USER, view.message))
            memory = Memory(frame, (), memory.notes, memory.waiting)
        else:
            memory = _absorb(memory, view.last, self.read)
        action, memory = _proceed(memory, view.owner, self.read)
        return (_sum_up(view.turn.events) if action is DONE else action), memory


def _sum_up(calls: list[Event]) -> Answer:
    """Say how the turn went, by what became of its calls."""
    outcomes = [event.result.ok for event in calls]
    if False not in outcomes and outcomes:
        return DONE
    return IN_PART if True in outcomes else IN_VAIN


def _absorb(memory: Memory, event: Event, read_text: Reader) -> Memory:
    """Take in what the last call returned: what `it` is now, and what it orders to do."""
    assert memory.frame is not None
    frame = _after(memory.frame, memory, event)
    memory = Memory(frame, memory.below, memory.notes, memory.waiting)
    tool, result = event.call.tool, event.result
    if not result.ok:
        return memory
    if memory.waiting:
        memory = _set_off(memory, event)
    if tool not in _DOCUMENTS:
        return memory
    body = result.output if result.body is None else result.body
    read = read_text(body)
    if not read or not _is_new(body, memory):
        return memory
    orders = Orders(read, (event.index,), body)
    delivered = Carried(body, (event.index,), (), _whole(body, event.index))
    return _push(memory, Frame(orders, it=delivered, sender=frame.sender))


def _after(frame: Frame, memory: Memory, event: Event) -> Frame:
    """Return the frame that made a call as it stands after the call."""
    tool, result = event.call.tool, event.result
    it, pages, mails, sender = frame.it, frame.pages, frame.mails, frame.sender
    position, part = frame.position + 1, 0
    if tool in _READERS:
        it = None
        if result.ok:
            by = _arrangers(frame)
            whole = None if by is None else _whole(result.output, event.index)
            theirs = None if by is None or whole is None else by + whole
            it = Carried(result.output, (event.index,), (), theirs)
        if tool == "web.search":
            pages = Listing(result.hits, event.index) if result.ok else None
        elif tool == "email.list":
            mails = Listing(result.hits, event.index) if result.ok else None
        elif result.sender:
            sender = Sender(_sender(result), event.index)
    elif frame.part + 1 < _parts(memory, frame):
        position, part = frame.position, frame.part + 1
    return Frame(frame.orders, position, part, it, pages, mails, sender)


def _whole(text: Text, event: int) -> Arranged | None:
    return None if USER in text.origins() else Arranged(texts=((text, event),))


def _parts(memory: Memory, frame: Frame) -> int:
    """Return how many times the frame's operation has to go out."""
    operation = frame.orders.read.operations[frame.position]
    carried = _look_up(operation.what, memory, frame) if type(operation) is Carry else None
    return 1 if carried is None else len(carried.parts)


def _set_off(memory: Memory, event: Event) -> Memory:
    """Start what waited for a call of this tool, the first to wait first."""
    tool = event.call.tool
    waiting = tuple(item for item in memory.waiting if item.tool != tool)
    due = [item for item in memory.waiting if item.tool == tool]
    memory = Memory(memory.frame, memory.below, memory.notes, waiting)
    fresh = Carried(event.result.output, (event.index,)) if tool in _READERS else None
    for item in reversed(due):
        if len(memory.below) + 1 < MAX_FRAMES:
            told = item.orders
            because = (*told.because, event.index)
            orders = Orders(told.read, because, told.document, told.arranged)
            memory = _push(memory, Frame(orders, it=fresh or item.it))
    return memory


def _push(memory: Memory, frame: Frame) -> Memory:
    below = memory.below if memory.frame is None else (*memory.below, memory.frame)
    return Memory(frame, below, memory.notes, memory.waiting)


def _sender(result: ToolResult) -> Text:
    """Return the sender as the letter has it, labels and all."""
    start = len("From: ")
    return result.output.slice(start, start + len(result.sender))


def _is_new(document: Text, memory: Memory) -> bool:
    """Tell whether a document may be obeyed: it is not while its own frame is open."""
    frames = memory.below if memory.frame is None else (*memory.below, memory.frame)
    return len(frames) < MAX_FRAMES and all(frame.orders.document != document for frame in frames)


def _proceed(memory: Memory, owner: str, read: Reader) -> tuple[ToolCall | Answer, Memory]:
    """Carry out operations until one of them is a call."""
    for thought in _THOUGHTS:
        frame = memory.frame
        if frame is None:
            return DONE, memory
        operations = frame.orders.read.operations
        if frame.position < len(operations) and thought % MAX_THOUGHTS < MAX_THOUGHTS - 1:
            operation = operations[frame.position]
        else:
            below = memory.below
            top = below[-1] if below else None
            if top is None and not memory.notes and not memory.waiting:
                return DONE, IDLE
            memory = Memory(top, below[:-1], memory.notes, memory.waiting)
            continue
        if type(operation) is ToolCall:
            if frame.orders.because:
                operation = _call(operation.tool, operation.args, frame, ())
            return operation, memory
        setting = Setting(owner, read)
        found = _HANDLERS[type(operation)](operation, memory, frame, setting)
        if isinstance(found, ToolCall):
            return found, memory
        memory = found
    return DONE, Memory(None, (), memory.notes, memory.waiting)


def _clause(frame: Frame) -> Text:
    """Return the words that order the operation at work; none, if the user's message does."""
    orders = frame.orders
    return orders.read.clauses[frame.position] if orders.because else EMPTY


def _arrangers(frame: Frame) -> Arranged | None:
    """Return who orders the operation at work, if no word of the user's does."""
    clause = _clause(frame)
    if not clause.string or USER in clause.origins():
        return None
    own = Arranged(((clause, frame.orders.because),)) if _is_alone(frame) else None
    return frame.orders.arranged or own


def _is_alone(frame: Frame) -> bool:
    """Tell whether one author gave all orders of a text up to the one at work.

    They are what `it` comes from, so whoever put others before them has a say in it.
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


def _arranged(carried: Carried, frame: Frame) -> Arranged | None:
    """Return how a text in hand came to be what the operation at work makes of it."""
    by = _arrangers(frame)
    return None if carried.arranged is None or by is None else carried.arranged + by


def _open_hit(op: OpenHit, memory: Memory, frame: Frame, _setting: Setting) -> ToolCall | Memory:
    hits = () if frame.pages is None else frame.pages.hits
    return _ask("web.open", frame.pages, _pick(hits, op.rank), memory, frame)


def _read_hit(op: ReadHit, memory: Memory, frame: Frame, _setting: Setting) -> ToolCall | Memory:
    fitting = [
        hit
        for hit in (() if frame.mails is None else frame.mails.hits)
        if (not op.sender or op.sender in lower(hit.sender))
        and (not op.subject or op.subject in lower(hit.title))
    ]
    return _ask("email.read", frame.mails, _pick(fitting, op.rank), memory, frame)


def _pick(hits: Sequence[Hit], rank: int) -> Hit | None:
    if not hits or rank >= len(hits):
        return None
    return hits[LAST if rank == LAST else rank]


def _ask(
    tool: str, listing: Listing | None, hit: Hit | None, memory: Memory, frame: Frame
) -> ToolCall | Memory:
    if listing is None or hit is None:
        return _step(memory, frame)
    return _call(tool, {"id": by_machine(hit.id)}, frame, (listing.event,))


def _call(tool: str, args: dict[str, Argument], frame: Frame, uses: tuple[int, ...]) -> ToolCall:
    orders = frame.orders
    if not orders.because:
        return ToolCall(tool, args, orders.because, uses)
    clause, alone = _clause(frame), _is_alone(frame)
    return ToolCall(tool, args, orders.because, uses, clause, alone, orders.arranged)


def _carry(op: Carry, memory: Memory, frame: Frame, setting: Setting) -> ToolCall | Memory:
    carried = _look_up(op.what, memory, frame)
    if carried is None:
        return _step(memory, frame)
    uses = carried.uses
    text = carried.parts[frame.part] if carried.parts else carried.text
    args: dict[str, Argument] = {**op.args, op.slot: text}
    if op.to is not None:
        if op.to.is_owner:
            args = {"to": by_machine(setting.owner), **args}
        elif frame.sender is not None:
            args = {"to": frame.sender.address, **args}
            uses = _unique((*uses, frame.sender.event))
        else:
            return _step(memory, frame)
    return _call(op.tool, args, frame, uses)


def _recode(op: Recode, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = _look_up(op.what, memory, frame)
    if carried is None:
        return _step(memory, frame)
    if op.encoding is None:
        return _step(memory, frame, carried)
    change = decode if op.decode else encode
    text = change(carried.text, op.encoding)
    if text is None or len(text) > MAX_TEXT_CHARS:
        return _step(memory, frame, None)
    return _step(memory, frame, Carried(text, carried.uses, (), _arranged(carried, frame)))


def _split(op: Split, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = _look_up(op.what, memory, frame)
    if carried is None:
        return _step(memory, frame)
    text, size = carried.text, len(carried.text)
    cuts = [size * number // op.parts for number in range(op.parts + 1)]
    parts = tuple(text.slice(a, b) for a, b in pairwise(cuts) if a < b)
    return _step(memory, frame, Carried(text, carried.uses, parts, carried.arranged))


def _remember(op: Remember, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = _look_up(op.what, memory, frame)
    memory = _step(memory, frame)
    if carried is None:
        return memory
    kept = Carried(carried.text, carried.uses, carried.parts, _arranged(carried, frame))
    others = tuple(note for note in memory.notes if note[0] != op.name)
    notes = (*others, (op.name, kept))[-MAX_NOTES:]
    return Memory(memory.frame, memory.below, notes, memory.waiting)


def _follow(op: Follow, memory: Memory, frame: Frame, setting: Setting) -> Memory:
    found = [_look_up(what, memory, frame) for what in op.whats]
    memory = _step(memory, frame)
    carried = [item for item in found if item is not None]
    if len(carried) < len(found):
        return memory
    texts = [carried[0].text]
    for item in carried[1:]:
        texts += (by_machine(" "), item.text)
    text = join(texts)
    if len(text) > MAX_TEXT_CHARS or not _is_new(text, memory):
        return memory
    it = Carried(text, _unique(use for item in carried for use in item.uses))
    because = _unique((*frame.orders.because, *it.uses))
    arranged = _arrangers(frame)
    if arranged is None and len(carried) == 1:
        # To follow one text as it is, is no more than to open it.
        arranged = Arranged()
    for item in carried:
        if arranged is not None:
            arranged = None if item.arranged is None else arranged + item.arranged
    read = setting.read(text)
    orders = Orders(read, because, text, arranged)
    return _push(memory, Frame(orders, it=it, sender=frame.sender))


def _unique(events: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(events))


def _wait(op: Wait, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    memory = _step(memory, frame)
    read, told = op.instructions, frame.orders
    orders = Orders(read, told.because, told.document, told.arranged)
    waiting = (*memory.waiting, Waiting(op.tool, orders, frame.it))[-MAX_WAITING:]
    return Memory(memory.frame, memory.below, memory.notes, waiting)


def _look_up(what: What, memory: Memory, frame: Frame) -> Carried | None:
    if isinstance(what, It):
        if frame.it is None and what.otherwise is not None:
            return Carried(what.otherwise, ())
        return frame.it
    if isinstance(what, Note):
        return next((carried for name, carried in memory.notes if name == what.name), None)
    return Carried(what, frame.orders.because, (), _arrangers(frame))


_SAME: Final = Carried(by_machine(""), ())


def _step(memory: Memory, frame: Frame, it: Carried | None = _SAME) -> Memory:
    """Go on to the frame's next operation, with something new in hand if given."""
    it = frame.it if it is _SAME else it
    position = frame.position + 1
    after = Frame(frame.orders, position, 0, it, frame.pages, frame.mails, frame.sender)
    return Memory(after, memory.below, memory.notes, memory.waiting)


_HANDLERS: Final[dict[type, Callable[[Any, Memory, Frame, Setting], ToolCall | Memory]]] = {
    OpenHit: _open_hit,
    ReadHit: _read_hit,
    Carry: _carry,
    Recode: _recode,
    Split: _split,
    Remember: _remember,
    Follow: _follow,
    Wait: _wait,
}
