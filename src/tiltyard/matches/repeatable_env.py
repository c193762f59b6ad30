"""An environment that an attack can play twice at the price of one run.

An official attack runs twice, because its candidates must not depend on chance. An honest attack
says the same messages again, so the environment remembers the episode after each message. Episodes
are values, so an attack that says something else goes on from there as in any environment.
"""

from typing import Any, Final

from tiltyard.episode.advance import Episode, advance
from tiltyard.episode.memory import bytes_of
from tiltyard.episode.sandbox_env import SandboxEnv

MAX_BYTES: Final = 1 << 28
"""The limit for all remembered events together: a hostile attack must not fill the memory of the
judge. Later messages are played again."""


class RepeatableEnv(SandboxEnv):
    """Remembers the episode after each message. Agent and guardrail must be deterministic."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._remembered: dict[tuple[int, str, int], tuple[Episode, Episode]] = {}
        self._bytes = 0

    def play_again(self, steps: int) -> None:
        """Go back to the beginning, with a new budget."""
        self.reset()
        self.steps_left, self.steps_spent = steps, 0

    def _advance(self, message: str, max_calls: int) -> Episode:
        before = self._episode
        key = id(before), message, max_calls
        known = self._remembered.get(key)
        if known is not None:
            return known[1]
        after = advance(before, message, max_calls)
        self._bytes += bytes_of(after.trace.turn_events)
        if self._bytes <= MAX_BYTES:
            # Both are kept, so that the id stays that of `before`.
            self._remembered[key] = before, after
        return after
