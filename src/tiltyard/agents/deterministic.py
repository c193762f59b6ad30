"""The worst-case agent: it follows every instruction, from the user or from a document.

`docs/grammar.md` states what it understands. It builds every argument from labelled pieces, and
every call names the events that delivered its instruction and the results that it uses.
"""

from typing import Final

from tiltyard.agents.grammar import Carry, Instructions, instructions
from tiltyard.agents.handlers import HANDLERS, Reader, Setting, make_call
from tiltyard.agents.memory import (
    IDLE,
    MAX_FRAMES,
    Carried,
    Frame,
    Listing,
    Memory,
    Orders,
    Sender,
    arrangers_of,
    is_new,
    look_up,
    push,
)
from tiltyard.contracts.agent import AgentTraits, View
from tiltyard.contracts.trace import Answer, Event
from tiltyard.world.results import FROM_USER, Arranged, ToolCall, ToolResult
from tiltyard.world.text import USER, Text

MAX_THOUGHTS: Final = 256
"""The agent drops a frame after this many operations without a call: notes can form a loop."""
_THOUGHTS: Final = range(MAX_THOUGHTS * MAX_FRAMES)

DONE: Final = Answer("Done.")
IN_PART: Final = Answer("Done, but not all of it went through.")
IN_VAIN: Final = Answer("I could not do that.")
NOTHING: Final = Answer("There was nothing for me to do.")

_DOCUMENTS: Final = frozenset(("web.open", "email.read", "fs.read", "shell.run"))
_READERS: Final = _DOCUMENTS | {"web.search", "email.list"}


class DeterministicAgent:
    """The agent of every comparable match."""

    name = "deterministic"
    traits = AgentTraits(labels_causes=True, pure=True)

    def begin(self) -> Memory:
        return IDLE

    def read(self, text: Text) -> Instructions:
        """Return the instructions that the agent finds in a text."""
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
    """Return the answer that says how many of the turn's calls succeeded."""
    outcomes = [event.result.ok for event in calls]
    if False not in outcomes and outcomes:
        return DONE
    return IN_PART if True in outcomes else IN_VAIN


def _absorb(memory: Memory, event: Event, read_text: Reader) -> Memory:
    """Update the memory with the last call's result, and start to follow its instructions."""
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
    if not read or not is_new(body, memory):
        return memory
    orders = Orders(read, (event.index,), body)
    delivered = Carried(body, (event.index,), (), _whole(body, event.index))
    return push(memory, Frame(orders, it=delivered, sender=frame.sender))


def _after(frame: Frame, memory: Memory, event: Event) -> Frame:
    """Return the frame that made a call, after the call."""
    tool, result = event.call.tool, event.result
    it, pages, mails, sender = frame.it, frame.pages, frame.mails, frame.sender
    position, part = frame.position + 1, 0
    if tool in _READERS:
        it = None
        if result.ok:
            by = arrangers_of(frame)
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
    """Return how many calls the frame's operation makes: one for each part of a split text."""
    operation = frame.orders.read.operations[frame.position]
    carried = look_up(operation.what, memory, frame) if type(operation) is Carry else None
    return 1 if carried is None else len(carried.parts)


def _set_off(memory: Memory, event: Event) -> Memory:
    """Start the operations that waited for a call of this tool, in the order they began to wait."""
    tool = event.call.tool
    waiting = tuple(item for item in memory.waiting if item.tool != tool)
    due = [item for item in memory.waiting if item.tool == tool]
    memory = Memory(memory.frame, memory.below, memory.notes, waiting)
    fresh = Carried(event.result.output, (event.index,)) if tool in _READERS else None
    for item in reversed(due):
        if len(memory.below) + 1 < MAX_FRAMES:
            waited = item.orders
            because = (*waited.because, event.index)
            orders = Orders(waited.read, because, waited.document, waited.arranged)
            memory = push(memory, Frame(orders, it=fresh or item.it))
    return memory


def _sender(result: ToolResult) -> Text:
    """Return the sender from the mail's text, with its labels."""
    start = len("From: ")
    return result.output.slice(start, start + len(result.sender))


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
                operation = make_call(operation.tool, operation.args, frame, ())
            return operation, memory
        setting = Setting(owner, read)
        found = HANDLERS[type(operation)](operation, memory, frame, setting)
        if isinstance(found, ToolCall):
            return found, memory
        memory = found
    return DONE, Memory(None, (), memory.notes, memory.waiting)
