"""Who plays a side of a match: a submission, or a rung of a shipped ladder."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.attacks import ATTACK_LADDER
from tiltyard.contracts.tracks import Part
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.kept_output import KeptOutput
from tiltyard.isolation.host.session import Deadlines
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.submissions import Submission, open_submission

BASELINE: Final = "baseline"
"""The name of the ruleset's own search, as the attack of a defense match."""
_LADDERS: Final[dict[Part, Mapping[str, Callable[[], Any]]]] = {
    "guardrail": GUARDRAIL_LADDER,
    "attack": ATTACK_LADDER,
}


class OpponentError(ValueError):
    """An unknown opponent. The message lists the known names."""


class Opponent(Struct, frozen=True):
    """An attack or a guardrail: a rung by its name, or a submission's."""

    part: Part
    name: str
    submission: Submission | None = None

    @property
    def id(self) -> str:
        """A rung's name or a submission's digest. A rung's code is fixed by Tiltyard's version."""
        return self.name if self.submission is None else self.submission.digest

    @property
    def is_baseline(self) -> bool:
        return self.submission is None and self.name == BASELINE


def find_rung(part: Part, wanted: str) -> Opponent | None:
    """Return a rung by name. Case, spaces and hyphens in the name do not matter."""
    return next(
        (Opponent(part, name) for name in _LADDERS[part] if plain_name(name) == plain_name(wanted)),
        None,
    )


def ladder(part: Part) -> list[Opponent]:
    """Return all rungs of a ladder, the weakest first."""
    return [Opponent(part, name) for name in _LADDERS[part]]


def find_opponent(part: Part, wanted: str, into: Path) -> Opponent:
    """Return the rung named `wanted`, or read the submission at that path into `into`."""
    names = [BASELINE] * (part == "attack") + [*_LADDERS[part]]
    if part == "attack" and plain_name(wanted) == BASELINE:
        return Opponent(part, BASELINE)
    rung = find_rung(part, wanted)
    if rung is not None:
        return rung
    if not Path(wanted).exists():
        raise OpponentError(
            f"there is no {part} {wanted!r}, neither as a path nor as a name; "
            f"the names are: {', '.join(names)}"
        )
    submission = open_submission(Path(wanted), into)
    submission.module(part)
    return Opponent(part, submission.name, submission)


def plain_name(name: str) -> str:
    """Return a name without case, spaces and punctuation, to compare it with another."""
    return "".join(char for char in name.lower() if char.isalnum())


class GuestSettings(Struct, frozen=True):
    """How guests are confined, and how long they may take."""

    unsafe: bool = False
    """Run guests without a jail."""
    packages: tuple[str, ...] = ()
    key: str = ""
    """Guests draw their randomness from it. It is not the organizer's secret."""
    offense_seconds: float = 1200.0
    defense_seconds: float = 2520.0

    def open_pool(
        self,
        submission: Submission,
        part: Part,
        stack: ExitStack,
        output: KeptOutput | None = None,
    ) -> GuestPool:
        """Open a pool of guests for one part of a submission. `stack` closes the pool.

        `output` keeps what the guests print.
        """
        seconds = self.offense_seconds if part == "attack" else self.defense_seconds
        pool = GuestPool(
            submission,
            part,
            key=self.key,
            packages=self.packages,
            deadlines=Deadlines(whole=seconds),
            unsafe=self.unsafe,
            output=output,
        )
        return stack.enter_context(pool)

    def maker_of(self, opponent: Opponent, stack: ExitStack) -> Callable[[], Any]:
        """Return a function that makes the opponent's objects, jailed if it is a submission's."""
        if opponent.submission is None:
            return _LADDERS[opponent.part][opponent.name]
        pool = self.open_pool(opponent.submission, opponent.part, stack)
        return pool.guardrail if opponent.part == "guardrail" else pool.attack


def guest_settings(ruleset: Ruleset, *, key: str = "", unsafe: bool = False) -> GuestSettings:
    """Return the guest settings that a ruleset asks for."""
    limits, packages = ruleset.limits, tuple(installed_packages(ruleset))
    return GuestSettings(unsafe, packages, key, limits.offense_seconds, limits.defense_seconds)
