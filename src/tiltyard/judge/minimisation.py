"""Reducing a finding to a chain from which nothing can be left out.

The unit is the clause. Provenance says where to cut first: the turns that the finding does not
depend on go at once. Then stretches of clauses are tried, halves before quarters, and at last every
clause that is left, always from the first to the last; each is dropped if the finding holds without
it, until nothing can be. So the result is the same each time, and of several minimal chains within
those turns it tends to keep the later clauses.
"""

from collections.abc import Callable, Collection
from functools import lru_cache

from msgspec import Struct

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.world.text import by_user

Chain = tuple[str, ...]
Holds = Callable[[Chain], bool]


class Unit(Struct, frozen=True, gc=False):
    """A clause, or a stretch of prose, of one message."""

    turn: int
    text: str


def minimise(messages: Chain, turns: Collection[int], holds: Holds) -> Chain:
    """Return the least chain for which the finding still holds; `turns` is where to look first."""
    units = _start(messages, turns, holds)
    if units is None:
        return messages
    units = _drop_chunks(units, holds)
    shrinking = True
    while shrinking:
        shrinking = False
        at = 0
        while at < len(units):
            fewer = _shorter(units, at, holds)
            if fewer is None:
                at += 1
            else:
                units = fewer
                shrinking = True
    return render(units)


def _drop_chunks(units: list[Unit], holds: Holds) -> list[Unit]:
    """Drop whole stretches first, halves before quarters: a long chain is mostly padding."""
    size = len(units) // 2
    while size > 1:
        at = 0
        while at < len(units):
            fewer = units[:at] + units[at + size :]
            if fewer and holds(render(fewer)):
                units = fewer
            else:
                at += size
        size //= 2
    return units


def _start(messages: Chain, turns: Collection[int], holds: Holds) -> list[Unit] | None:
    """Return units to reduce: of these turns if they suffice, with prose only if it is needed."""
    for chosen in (turns, range(len(messages))):
        for prose in (False, True):
            units = [
                Unit(turn, text)
                for turn in sorted(chosen)
                for text in split(messages[turn], prose=prose)
            ]
            if units and holds(render(units)):
                return units
    return None


def _shorter(units: list[Unit], at: int, holds: Holds) -> list[Unit] | None:
    without = units[:at] + units[at + 1 :]
    if without and holds(render(without)):
        return without
    for text in _less(units[at].text):
        changed = [*units[:at], Unit(units[at].turn, text), *units[at + 1 :]]
        if holds(render(changed)):
            return changed
    return None


def render(units: list[Unit]) -> Chain:
    """Write units as messages again, one line a unit: a line is a sentence of its own."""
    lines: dict[int, list[str]] = {}
    for unit in units:
        lines.setdefault(unit.turn, []).append(unit.text)
    return tuple("\n".join(lines[turn]) for turn in sorted(lines))


@lru_cache(maxsize=4096)
def split(message: str, *, prose: bool) -> tuple[str, ...]:
    """Cut a message into its clauses, and into the prose between them if that is wanted."""
    parts: list[str] = []
    position = 0
    for start, stop in dict.fromkeys(instructions(by_user(message)).spans):
        if prose:
            parts += filter(None, (line.strip() for line in message[position:start].split("\n")))
        parts.append(message[start:stop])
        position = stop
    if prose:
        parts += filter(None, (line.strip() for line in message[position:].split("\n")))
    return tuple(parts)


@lru_cache(maxsize=4096)
def _less(clause: str) -> tuple[str, ...]:
    """Return a clause that waits with one of its inner clauses left out, in each way."""
    read = instructions(by_user(clause)).operations
    if len(read) != 1 or not isinstance(read[0], Wait):
        return ()
    spans = list(dict.fromkeys(read[0].instructions.spans))
    if len(spans) < 2:
        return ()
    inner = [clause[start:stop] for start, stop in spans]
    head = clause[: spans[0][0]]
    return tuple(head + ", ".join(inner[:at] + inner[at + 1 :]) for at in range(len(inner)))
