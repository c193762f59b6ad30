"""How many of an attack's messages the deterministic agent understands.

An attack that speaks past the agent finds nothing, and its author should learn why. Only practice
runs tell.
"""

from typing import Final

from msgspec import Struct

from tiltyard.agents.grammar import instructions
from tiltyard.world.text import by_user

MAX_MESSAGES: Final = 10_000
"""How many different messages are counted. This bounds the memory."""
MAX_EXAMPLE_CHARS: Final = 200


class Understanding(Struct, frozen=True):
    """The different messages of an attack, and how many of them order anything."""

    messages: int
    understood: int
    example: str = ""
    """The beginning of the first message that the agent did not understand."""

    @property
    def sentence(self) -> str:
        total = "1 message" if self.messages == 1 else f"{self.messages:,} messages"
        said = f"the agent understood {self.understood:,} of {total}"
        if not self.example:
            return f"{said}."
        words = " ".join(self.example.split())
        return f"{said}. It took this one for prose: {words}"


class Listener:
    """Hears the messages of an attack."""

    def __init__(self) -> None:
        self._heard: set[str] = set()
        self._understood = 0
        self._example = ""

    def hear(self, message: str) -> None:
        if message in self._heard or len(self._heard) >= MAX_MESSAGES:
            return
        self._heard.add(message)
        if instructions(by_user(message)):
            self._understood += 1
        elif not self._example:
            self._example = message[:MAX_EXAMPLE_CHARS]

    @property
    def understanding(self) -> Understanding:
        return Understanding(len(self._heard), self._understood, self._example)
