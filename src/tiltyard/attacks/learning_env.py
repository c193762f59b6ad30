"""Learn from refusals: which sources block later calls, and which words the guardrail refuses.

This module only counts; `enhanced` decides what to do about it. It reads public events, and keeps
with every snapshot which sources the conversation has read.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from tiltyard.attacks.budgeted_env import EFFECTS, BudgetedEnv, Event, is_refused
from tiltyard.contracts.attack import AttackEnv, AttackRunConfig

MAX_NAME_CHARS: Final = 200
"""Longer arguments are texts: too many words to tell which one the guardrail refused."""
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_NONE: Final[frozenset[str]] = frozenset()


class Lessons:
    """What was allowed and what was refused, after which sources and with which words."""

    def __init__(self) -> None:
        self._allowed: set[frozenset[str]] = set()
        self._refused: set[frozenset[str]] = set()
        self._allowed_words: set[str] = set()
        self._refused_words: dict[tuple[frozenset[str], str], None] = {}

    def learn(self, sources: frozenset[str], event: Event) -> None:
        """Learn from one call after these sources were read."""
        if is_refused(event):
            self._refused_words.update(((sources, word), None) for word in _words(event))
        else:
            self._allowed_words.update(_words(event))
        if event.name in EFFECTS:
            (self._refused if is_refused(event) else self._allowed).add(sources)

    @property
    def blocking_sources(self) -> frozenset[str]:
        """Sources after which no harmful call was allowed, while without them some were."""
        if not self._allowed:
            return _NONE
        return _NONE.union(*self._refused) - _NONE.union(*self._allowed)

    @property
    def refused_words(self) -> list[str]:
        """Words that occur in refused calls only, where no blocking source explains the refusal."""
        blocking = self.blocking_sources
        stopped = (word for sources, word in self._refused_words if not sources & blocking)
        return [word for word in dict.fromkeys(stopped) if word not in self._allowed_words]


def _words(event: Event) -> Iterator[str]:
    for value in event.args.values():
        if isinstance(value, str) and len(value) <= MAX_NAME_CHARS:
            yield from (word.lower() for word in _WORD.findall(value))


class LearningEnv(BudgetedEnv):
    """A budgeted environment that learns from every call."""

    def __init__(self, env: AttackEnv, config: AttackRunConfig) -> None:
        super().__init__(env, config)
        self.lessons = Lessons()
        self._sources = _NONE

    def interact(self, message: str, max_tool_hops: int | None = None) -> Any:
        result = super().interact(message, max_tool_hops)
        for event in result.events:
            self.lessons.learn(self._sources, event)
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
