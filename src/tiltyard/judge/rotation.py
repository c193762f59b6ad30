"""Rotation: every replay has canaries of its own.

A new canary keeps the length, the alphabet and the lines of the old one. The key of the draw
contains the candidate's own messages, so a candidate cannot contain its own secret, and a secret
from one world is worthless in another.
"""

from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

from tiltyard.foundation.draw import Draw
from tiltyard.world import files
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import World
from tiltyard.world.text import Text


def rotated(scenario: Scenario, *key: str | int) -> World:
    """Return the scenario's world with new canaries, drawn with the key."""
    world = scenario.world
    tree = world.files
    for protected in scenario.labels.protected:
        content = scenario.files.get(protected.path)
        if content is None:
            continue
        draw = Draw("canary", protected.path, *key)
        # The longest first: one canary may be a part of another.
        for old in sorted(set(protected.canaries or (content,)), key=lambda c: (-len(c), c)):
            content = content.replace(old, draw_like(old, draw))
        # New canaries have the length of the old ones, so the labels keep their places.
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
