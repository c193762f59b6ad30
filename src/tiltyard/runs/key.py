"""An organizer's key, from which the official seeds are drawn.

Anyone can play the public seed, so a submission can be fitted to it. Only the organizer has the
key. The official seeds are the same for every submission under one ruleset.
"""

import re
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import Ruleset

KEY_DIGITS: Final = 64
FINGERPRINT_DIGITS: Final = 16
MAX_KEY_BYTES: Final = 1_000
_SHAPE: Final = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}")


class KeyFileError(ValueError):
    """A file that is not a key. The message says what a key looks like."""


class Key(Struct, frozen=True):
    secret: str

    @property
    def commitment(self) -> str:
        """A hash to publish before the matches. It binds the organizer, and reveals nothing."""
        return sha256(f"tiltyard key {self.secret}".encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """A public name for the key: the beginning of the commitment."""
        return self.commitment[:FINGERPRINT_DIGITS]

    def seeds(self, ruleset: Ruleset) -> tuple[int, ...]:
        """Return the official seeds under a ruleset."""
        draw = Draw("official", self.secret, ruleset.id)
        return tuple(draw.integer() >> 1 for _ in range(ruleset.official.seeds))

    def arena(self, ruleset: Ruleset) -> str:
        """Return the key of the arena under a ruleset."""
        return sha256(f"arena {self.secret} {ruleset.id}".encode()).hexdigest()

    def branch(self, seed: int) -> str:
        """Return the key of one scenario, from which its search and replays draw."""
        return sha256(f"{self.secret} {seed}".encode()).hexdigest()


def make_key() -> str:
    """Return the text of a new key file."""
    return f"{secrets.token_hex(KEY_DIGITS // 2)}\n"


def read_key(path: Path) -> Key:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_KEY_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise KeyFileError(f"the key {path} cannot be read: {error.strerror}") from None
    if not _SHAPE.fullmatch(text):
        raise KeyFileError(
            f"{path} is not a key: a key is {KEY_DIGITS} hexadecimal digits on one line. "
            "Make one with `tiltyard key FILE`."
        )
    return Key(text)
