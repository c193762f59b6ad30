"""The turns of an episode as plain data.

An attack may export its trace after every message and never reset. So a turn is converted once, and
every later export shares the result. A change that the attack makes in one export does not reach
the next: the shared dicts notice it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from tiltyard.contracts.trace import PublicEvent


class Turn(Protocol):
    """One turn, and a link to the turn before it."""

    @property
    def parent(self) -> "Turn | None": ...
    @property
    def number(self) -> int:
        """The number of the turn, from 1."""

    @property
    def message(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def events(self) -> tuple[PublicEvent, ...]: ...
    @property
    def egress(self) -> tuple[tuple[str, str], ...]: ...


class Exported:
    """The turns that were exported last. An export converts only the turns that are new."""

    def __init__(self) -> None:
        self.convert: Callable[[dict[str, Any]], dict[str, Any]] = dict
        """Converts an event after its conversion to plain data."""
        self._turns: list[Turn] = []
        self._ends: list[tuple[int, int]] = []
        """How many events and posts there are after each turn."""
        self._messages: list[str] = []
        self._answers: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._egress: list[dict[str, Any]] = []

    def export(self, last: Turn | None, seed: int) -> dict[str, Any]:
        """Return all turns up to `last`."""
        new: list[Turn] = []
        while last is not None and not self._has(last):
            new.append(last)
            last = last.parent
        self._keep(0 if last is None else last.number)
        for turn in reversed(new):
            self._add(turn)
        return {
            "seed": seed,
            "user_messages": [*self._messages],
            "assistant_messages": [*self._answers],
            "tool_events": [*self._events],
            "egress": [*self._egress],
        }

    def _has(self, turn: Turn) -> bool:
        return turn.number <= len(self._turns) and self._turns[turn.number - 1] is turn

    def _keep(self, turns: int) -> None:
        events, posts = self._ends[turns - 1] if turns else (0, 0)
        for part in (self._turns, self._ends, self._messages, self._answers):
            del part[turns:]
        del self._events[events:]
        del self._egress[posts:]

    def _add(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._messages.append(turn.message)
        self._answers.append(turn.answer)
        for event in turn.events:
            plain = self.convert(msgspec.to_builtins(event))
            plain["args"] = _Shared(plain["args"], self)
            self._events.append(_Shared(plain, self))
        for url, data in turn.egress:
            self._egress.append(_Shared({"url": url, "data": data}, self))
        self._ends.append((len(self._events), len(self._egress)))

    def drop(self) -> None:
        """Convert all turns again at the next export."""
        self._keep(0)


class _Shared(dict[str, Any]):
    """A dict in several exports. When the attack changes it, the next export gets another."""

    __slots__ = ("_exported",)

    def __init__(self, content: Mapping[str, Any], exported: Exported) -> None:
        super().__init__(content)
        self._exported = exported

    def __reduce_ex__(self, protocol: object) -> Any:
        # A copy is a plain dict.
        return dict, (dict(self),)


def _noticed(name: str) -> Callable[..., Any]:
    change = getattr(dict, name)

    def changed(self: _Shared, *args: Any, **named: Any) -> Any:
        self._exported.drop()
        return change(self, *args, **named)

    return changed


_CHANGES: Final = (
    "__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update",
)  # fmt: skip
for _name in _CHANGES:
    setattr(_Shared, _name, _noticed(_name))
