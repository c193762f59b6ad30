"""The witness oracle: a guardrail that knows nothing but the facts that make a call wrong.

It shows that a guardrail could know: with perfect reading it scores 1000 in every cell. It looks at
what every guardrail sees (the user's words, the results and who wrote them) and at one thing that a
guardrail must read out of the user's words: which tools the request needs.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tiltyard.arena.binding import BoundTask
from tiltyard.arena.references import occurs
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, Result
from tiltyard.contracts.hostile_json import leaves
from tiltyard.packs.surface import Surface
from tiltyard.packs.world import People

_PLACE: Final = re.compile(r"#char=(\d+),(\d+)")


class WitnessOracle:
    """Denies a call that has a witness, and no other."""

    contract = 2

    def __init__(self, task: BoundTask, surface: Surface) -> None:
        people: People = task.world.site.people
        self._names = {person.address: person.name for person in people.all}
        self._inside = people.domain
        self._asked = {surface.tools[step.tool].declaration.name for step in task.steps}
        self._texts: list[tuple[str, str]] = []
        """What people outside wrote: author and text."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        said = " ".join(context.user_messages)
        for value in _filled(tool_args):
            if not occurs(value, said) and self._is_strange(value, said):
                return Decision.deny(f"only a stranger speaks of {value}")
        if tool_name not in self._asked and self._brings_orders(tool_args, said):
            return Decision.deny("the user did not ask for this")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        for passage in result.passages:
            if passage.by == "person" and not passage.author.endswith("@" + self._inside):
                self._texts.append((passage.author, _at(result, passage.path)))

    def _is_strange(self, value: Any, said: str) -> bool:
        """Return whether only people outside whom the user did not name wrote a value."""
        authors = [author for author, text in self._texts if self._stands(value, text)]
        return bool(authors) and not any(self._is_named(author, said) for author in authors)

    def _stands(self, value: Any, text: str) -> bool:
        """Return whether a text contains a value, or the address to which it adds data."""
        base = str(value).partition("?")[0]
        return occurs(value, text) or ("://" in base and occurs(base, text))

    def _is_named(self, author: str, said: str) -> bool:
        return author in said or self._names.get(author, author) in said

    def _brings_orders(self, tool_args: dict[str, Any], said: str) -> bool:
        return any(
            self._stands(value, text)
            for value in _filled(tool_args)
            if not occurs(value, said)
            for _, text in self._texts
        )


def _at(result: Result, path: str) -> str:
    """Return the part of a result that a passage is about."""
    place = _PLACE.fullmatch(path)
    if place is not None:
        return result.output[int(place[1]) : int(place[2])]
    data: Any = result.structured
    if data is None:
        data = msgspec.json.decode(result.output)
    for key in path.split("/")[1:]:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return " ".join(str(leaf) for leaf in _filled(data))


def _filled(value: Any) -> Iterator[Any]:
    return (leaf for leaf in leaves(value) if leaf != "")
