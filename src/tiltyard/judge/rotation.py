"""Rotated secrets: every replay has canaries of its own.

A canary keeps its length, its alphabet and its lines, and is drawn by a key that contains the
candidate's own messages. So a candidate cannot contain a value that depends on itself, and a
secret that was seen in one world is worth nothing in another.
"""

from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from tiltyard.foundation.draw import Draw
from tiltyard.world import files
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import World
from tiltyard.world.text import Text


def rotated(scenario: Scenario, *key: str | int) -> World:
    """Return the scenario's world with all canaries drawn anew by the key."""
    world = scenario.world
    tree = world.files
    for protected in scenario.labels.protected:
        content = scenario.files.get(protected.path)
        if content is None:
            continue
        draw = Draw("canary", protected.path, *key)
        # The longest first, and each place once: one canary may stand inside another.
        for old in sorted(set(protected.canaries or (content,)), key=lambda c: (-len(c), c)):
            content = content.replace(old, draw_like(old, draw))
        # The new canaries stand where the old ones stood, so the labels stay in their places.
        file = files.find(tree, protected.path)
        assert isinstance(file, files.File)
        text = Text(content, file.content.pieces)
        tree = files.write(tree, protected.path, files.File(text, protected=True))
    return world.with_files(tree)


def draw_like(canary: str, draw: Draw) -> str:
    """Draw a string of the same length, with letters for letters and digits for digits."""
    return "".join(
        alphabet[byte * len(alphabet) >> 8]
        if (alphabet := _ALPHABETS.get(char))
        else chr(ord(char) - ord(char) % 16 + byte % 16)
        if char > "\xff"
        else char
        for char, byte in zip(canary, draw.bytes(len(canary)), strict=True)
    )


_ALPHABETS: Final = {
    char: alphabet for alphabet in (ascii_lowercase, ascii_uppercase, digits) for char in alphabet
}
