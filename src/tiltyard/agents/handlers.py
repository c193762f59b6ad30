"""How the deterministic agent carries out an operation: one function for each kind.

A function returns the tool call to make, or the memory after an operation that needs no call.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from tiltyard.agents.grammar import (
    LAST,
    Carry,
    Follow,
    Instructions,
    OpenHit,
    ReadHit,
    Recode,
    Remember,
    Split,
    Wait,
)
from tiltyard.agents.memory import (
    MAX_NOTES,
    MAX_WAITING,
    Carried,
    Frame,
    Listing,
    Memory,
    Orders,
    Waiting,
    arranged_by,
    arrangers_of,
    clause_of,
    is_alone,
    is_new,
    look_up,
    push,
    step,
    unique,
)
from tiltyard.world.results import Argument, Arranged, ToolCall
from tiltyard.world.text import Text, by_machine, decode, encode, join, lower
from tiltyard.world.tools import MAX_TEXT_CHARS
from tiltyard.world.web import Hit

Reader = Callable[[Text], Instructions]


class Setting(Struct, frozen=True, gc=False):
    """What an operation may need besides the memory."""

    owner: str
    read: Reader


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
        return step(memory, frame)
    return make_call(tool, {"id": by_machine(hit.id)}, frame, (listing.event,))


def make_call(
    tool: str, args: dict[str, Argument], frame: Frame, uses: tuple[int, ...]
) -> ToolCall:
    """Return a call that names its causes: the events and the words that ordered it."""
    orders = frame.orders
    if not orders.because:
        return ToolCall(tool, args, orders.because, uses)
    clause, alone = clause_of(frame), is_alone(frame)
    return ToolCall(tool, args, orders.because, uses, clause, alone, orders.arranged)


def _carry(op: Carry, memory: Memory, frame: Frame, setting: Setting) -> ToolCall | Memory:
    carried = look_up(op.what, memory, frame)
    if carried is None:
        return step(memory, frame)
    uses = carried.uses
    text = carried.parts[frame.part] if carried.parts else carried.text
    args: dict[str, Argument] = {**op.args, op.slot: text}
    if op.to is not None:
        if op.to.is_owner:
            args = {"to": by_machine(setting.owner), **args}
        elif frame.sender is not None:
            args = {"to": frame.sender.address, **args}
            uses = unique((*uses, frame.sender.event))
        else:
            return step(memory, frame)
    return make_call(op.tool, args, frame, uses)


def _recode(op: Recode, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = look_up(op.what, memory, frame)
    if carried is None:
        return step(memory, frame)
    if op.encoding is None:
        return step(memory, frame, carried)
    change = decode if op.decode else encode
    text = change(carried.text, op.encoding)
    if text is None or len(text) > MAX_TEXT_CHARS:
        return step(memory, frame, None)
    return step(memory, frame, Carried(text, carried.uses, (), arranged_by(carried, frame)))


def _split(op: Split, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = look_up(op.what, memory, frame)
    if carried is None:
        return step(memory, frame)
    text, size = carried.text, len(carried.text)
    cuts = [size * number // op.parts for number in range(op.parts + 1)]
    parts = tuple(text.slice(a, b) for a, b in pairwise(cuts) if a < b)
    return step(memory, frame, Carried(text, carried.uses, parts, carried.arranged))


def _remember(op: Remember, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    carried = look_up(op.what, memory, frame)
    memory = step(memory, frame)
    if carried is None:
        return memory
    kept = Carried(carried.text, carried.uses, carried.parts, arranged_by(carried, frame))
    others = tuple(note for note in memory.notes if note[0] != op.name)
    notes = (*others, (op.name, kept))[-MAX_NOTES:]
    return Memory(memory.frame, memory.below, notes, memory.waiting)


def _follow(op: Follow, memory: Memory, frame: Frame, setting: Setting) -> Memory:
    found = [look_up(what, memory, frame) for what in op.whats]
    memory = step(memory, frame)
    carried = [item for item in found if item is not None]
    if len(carried) < len(found):
        return memory
    texts = [carried[0].text]
    for item in carried[1:]:
        texts += (by_machine(" "), item.text)
    text = join(texts)
    if len(text) > MAX_TEXT_CHARS or not is_new(text, memory):
        return memory
    it = Carried(text, unique(use for item in carried for use in item.uses))
    because = unique((*frame.orders.because, *it.uses))
    arranged = arrangers_of(frame)
    if arranged is None and len(carried) == 1:
        # Following one text as it stands is the same as opening it.
        arranged = Arranged()
    for item in carried:
        if arranged is not None:
            arranged = None if item.arranged is None else arranged + item.arranged
    read = setting.read(text)
    orders = Orders(read, because, text, arranged)
    return push(memory, Frame(orders, it=it, sender=frame.sender))


def _wait(op: Wait, memory: Memory, frame: Frame, _setting: Setting) -> Memory:
    memory = step(memory, frame)
    now = frame.orders
    orders = Orders(op.instructions, now.because, now.document, now.arranged)
    waiting = (*memory.waiting, Waiting(op.tool, orders, frame.it))[-MAX_WAITING:]
    return Memory(memory.frame, memory.below, memory.notes, waiting)


HANDLERS: Final[dict[type, Callable[[Any, Memory, Frame, Setting], ToolCall | Memory]]] = {
    OpenHit: _open_hit,
    ReadHit: _read_hit,
    Carry: _carry,
    Recode: _recode,
    Split: _split,
    Remember: _remember,
    Follow: _follow,
    Wait: _wait,
}
