"""Who stands on a side of a match: the submission, a rung of a ladder, or somebody else's."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tiltyard.attacks import ATTACK_LADDER
from tiltyard.contracts.tracks import Part
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.session import Deadlines
from tiltyard.submissions import Submission, open_submission

BASELINE: Final = "baseline"
"""The ruleset's own search, as the attack of a defense match."""
_LADDERS: Final[dict[Part, Mapping[str, Callable[[], Any]]]] = {
    "guardrail": GUARDRAIL_LADDER,
    "attack": ATTACK_LADDER,
}


class OpponentError(ValueError):
    """Nobody by that name, and who there is."""


class Opponent(Struct, frozen=True):
    """A rung by its name, or a submission."""

    part: Part
    name: str
    submission: Submission | None = None

    @property
    def id(self) -> str:
        """What a run's identity has of it; a rung's code changes with the engine's version."""
        return self.name if self.submission is None else self.submission.digest


def find_rung(part: Part, wanted: str) -> Opponent | None:
    """Return a rung of a ladder by name, in any usual spelling."""
    return next(
        (Opponent(part, name) for name in _LADDERS[part] if _plain(name) == _plain(wanted)), None
    )


def ladder(part: Part) -> list[Opponent]:
    """Return all rungs of a ladder, the weakest first."""
    return [Opponent(part, name) for name in _LADDERS[part]]


def find_opponent(part: Part, wanted: str, into: Path) -> Opponent:
    """Return a rung by name, in any usual spelling, or read a submission into a directory."""
    names = [BASELINE] * (part == "attack") + [*_LADDERS[part]]
    if part == "attack" and _plain(wanted) == BASELINE:
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


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


class Lodging(Struct, frozen=True):
    """How guests are held, whoever they are."""

    unsafe: bool = False
    packages: tuple[str, ...] = ()
    key: str = ""
    offense_seconds: float = 1200.0
    defense_seconds: float = 2520.0

    def open(self, submission: Submission, part: Part, stack: ExitStack) -> GuestPool:
        """Open a house for the guests of a submission."""
        seconds = self.offense_seconds if part == "attack" else self.defense_seconds
        house = GuestPool(
            submission,
            part,
            key=self.key,
            packages=self.packages,
            deadlines=Deadlines(whole=seconds),
            unsafe=self.unsafe,
        )
        return stack.enter_context(house)

    def maker(self, opponent: Opponent, stack: ExitStack) -> Callable[[], Any]:
        """Return what makes an opponent's objects, jailed if they are a stranger's."""
        if opponent.submission is None:
            return _LADDERS[opponent.part][opponent.name]
        house = self.open(opponent.submission, opponent.part, stack)
        return house.guardrail if opponent.part == "guardrail" else house.attack
