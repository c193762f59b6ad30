"""Official runs: seeds from an organizer's key, and what a competitor is shown of them.

Everybody can play the public seed, so everybody can fit it. Official seeds are drawn from a key
that the organizer alone has; they are the same for every submission under one ruleset.
"""

import re
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from tiltyard.foundation.draw import Draw
from tiltyard.reporting.schema import DefensePart, Failure, OffensePart, Report
from tiltyard.rulesets.ruleset import Ruleset

KEY_DIGITS: Final = 64
MAX_KEY_BYTES: Final = 1_000
_SHAPE: Final = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}")


class KeyFileError(ValueError):
    """A key that cannot be used, and what one looks like."""


class Key(Struct, frozen=True):
    secret: str

    @property
    def fingerprint(self) -> str:
        """What may be told of it."""
        return sha256(f"tiltyard key {self.secret}".encode()).hexdigest()[:16]

    def seeds(self, ruleset: Ruleset) -> tuple[int, ...]:
        """Return the seeds of the scenarios."""
        draw = Draw("official", self.secret, ruleset.id)
        return tuple(draw.integer() >> 1 for _ in range(ruleset.official.seeds))

    def branch(self, seed: int) -> str:
        """Return what search and replays of one scenario draw from."""
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
            f"{path} is no key: a key is {KEY_DIGITS} hexadecimal digits on one line. "
            "Make one with `tiltyard key FILE`."
        )
    return Key(text)


def restricted(report: Report) -> Report:
    """Return what a competitor may see: scores and findings by predicate, no words, no times."""
    return structs.replace(
        report,
        offense=_offense(report.offense),
        defense=_defense(report.defense),
        failures=tuple(map(_failure, report.failures)),
        notes=(),
        setting=structs.replace(report.setting, seeds=(), scenarios=()),
        seconds={},
        restricted=True,
    )


def _offense(part: OffensePart | None) -> OffensePart | None:
    if part is None:
        return None
    # How many steps and candidates there were is the attack's to choose: it could say anything.
    return structs.replace(
        part,
        found=(),
        refused={},
        candidates=0,
        steps=0,
        unverified=(),
        models=(),
        digest="",
    )


def _defense(part: DefensePart | None) -> DefensePart | None:
    if part is None:
        return None
    # What a search came to tells how it went, and where: none of it is the competitor's to know.
    return structs.replace(
        part,
        found=(),
        trials=(),
        curve=(),
        archive=(),
        faults=(),
        interactions=0,
        cells=0,
        digest="",
    )


def _failure(failure: Failure) -> Failure:
    """Tell the kind of it, the exception's type and the submission's own line."""
    return Failure(failure.track, failure.kind, failure.official, official=failure.official)
