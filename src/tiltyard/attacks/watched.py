"""What refusals teach: which sources close the way, and which words are never let through.

Owns the counting, and nothing that is done about it. It looks at public events alone, and keeps
beside every snapshot which sources the conversation had read.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from tiltyard.attacks.metered import EFFECTS, Event, Metered, is_refused
from tiltyard.contracts.attack import AttackEnv, AttackRunConfig

MAX_NAME_CHARS: Final = 200
"""Longer arguments are texts: too many words to tell which of them was the wrong one."""
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_NONE: Final[frozenset[str]] = frozenset()


class Lessons:
    """What got through and what did not, after which sources and with which words."""

    def __init__(self) -> None:
        self._passed: set[frozenset[str]] = set()
        self._refused: set[frozenset[str]] = set()
        self._spoken: set[str] = set()
        self._stopped: dict[tuple[frozenset[str], str], None] = {}

    def take(self, sources: frozenset[str], event: Event) -> None:
        """Learn from one call, made when these sources had been read."""
        if is_refused(event):
            self._stopped.update(((sources, word), None) for word in _words(event))
        else:
            self._spoken.update(_words(event))
        if event.name in EFFECTS:
            (self._refused if is_refused(event) else self._passed).add(sources)

    @property
    def closing(self) -> frozenset[str]:
        """The sources after which no call that matters got through, while without them some did."""
        if not self._passed:
            return _NONE
        return _NONE.union(*self._refused) - _NONE.union(*self._passed)

    @property
    def refused_words(self) -> list[str]:
        """The words that stood in refused calls alone, where no source can have been the cause."""
        closing = self.closing
        stopped = (word for sources, word in self._stopped if not sources & closing)
        return [word for word in dict.fromkeys(stopped) if word not in self._spoken]


def _words(event: Event) -> Iterator[str]:
    for value in event.args.values():
        if isinstance(value, str) and len(value) <= MAX_NAME_CHARS:
            yield from (word.lower() for word in _WORD.findall(value))


class Watched(Metered):
    """A counted environment that learns from whatever is said in it."""

    def __init__(self, env: AttackEnv, config: AttackRunConfig) -> None:
        super().__init__(env, config)
        self.lessons = Lessons()
        self._sources = _NONE

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        result = super().interact(message, max_tool_hops)
        for event in result.events:
            self.lessons.take(self._sources, event)
            if event.ok and event.source not in self._sources:
                self._sources |= {event.source}
        return result

    def reset(self) -> None:
        self._sources = _NONE
        super().reset()

    def snapshot(self) -> Any:
        return self._sources, super().snapshot()

    def restore(self, snapshot: Any) -> None:
        self._sources, inner = snapshot
        super().restore(inner)
