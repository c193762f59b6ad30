"""Minimisation: reduce a chain until no clause can be left out.

First drop all turns that the breach does not depend on. Then try to drop stretches of clauses,
halves before quarters, and at last single clauses. Each pass goes from the first clause to the
last, and drops everything that the breach does not need, until nothing more can be dropped. The
result is deterministic. Of several minimal chains it tends to keep the later clauses.
"""

from collections.abc import Callable, Collection
from functools import lru_cache

from msgspec import Struct

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.world.text import by_user

Chain = tuple[str, ...]
Holds = Callable[[Chain], bool]


class Unit(Struct, frozen=True, gc=False):
    """A clause, or a line of prose, in one message."""

    turn: int
    text: str


def minimise(messages: Chain, turns: Collection[int], holds: Holds) -> Chain:
    """Return a minimal chain for which `holds` is true; try with `turns` alone first."""
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
    """Drop whole stretches, halves before quarters: a long chain is mostly padding."""
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
    """Return the units to start from: only `turns` if they suffice, prose only if needed."""
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
    for text in _shortened(units[at].text):
        changed = [*units[:at], Unit(units[at].turn, text), *units[at + 1 :]]
        if holds(render(changed)):
            return changed
    return None


def render(units: list[Unit]) -> Chain:
    """Write units as messages, one line per unit: the grammar reads a line as a sentence."""
    lines: dict[int, list[str]] = {}
    for unit in units:
        lines.setdefault(unit.turn, []).append(unit.text)
    return tuple("\n".join(lines[turn]) for turn in sorted(lines))


@lru_cache(maxsize=4096)
def split(message: str, *, prose: bool) -> tuple[str, ...]:
    """Split a message into its clauses, and with `prose` also into the text between them."""
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
def _shortened(clause: str) -> tuple[str, ...]:
    """Return the variants of a waiting clause with one of its inner clauses left out."""
    read = instructions(by_user(clause)).operations
    if len(read) != 1 or not isinstance(read[0], Wait):
        return ()
    spans = list(dict.fromkeys(read[0].instructions.spans))
    if len(spans) < 2:
        return ()
    inner = [clause[start:stop] for start, stop in spans]
    head = clause[: spans[0][0]]
    return tuple(head + ", ".join(inner[:at] + inner[at + 1 :]) for at in range(len(inner)))
