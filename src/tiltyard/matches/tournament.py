"""A tournament: every attack against every guardrail.

Each pair plays an offense match with that guardrail in the place of the ruleset's. Strangers' code
is jailed on both sides, in guests that no other pair has seen. A pair that cannot be played has its
reason in the matrix, and the others go on. Nothing here is a competition's score.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from math import fsum
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from tiltyard.contracts.tracks import PARTS
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.isolation.host.session import GuestError
from tiltyard.matches.attack_run import MatchError
from tiltyard.matches.matches import play_offense
from tiltyard.matches.opponents import BASELINE, Lodging, Opponent, find_rung, ladder
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import SearchStatus
from tiltyard.submissions import Submission, SubmissionError, open_submission
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario


class TournamentError(ValueError):
    """A tournament that cannot be held, and what to do about it."""


class Refused(Struct, frozen=True):
    """Whoever was found in a directory, and cannot enter."""

    name: str
    reason: str


class Entrants(Struct, frozen=True):
    attacks: tuple[Opponent, ...]
    guardrails: tuple[Opponent, ...]
    refused: tuple[Refused, ...] = ()


class Pairing(Struct, frozen=True):
    """One cell of the matrix. Without a score, it has a failure."""

    attack: str
    guardrail: str
    score: float | None = None
    raw: int | None = None
    unique_cells: int | None = None
    candidates: int | None = None
    steps: int | None = None
    digest: str = ""
    failure: str = ""
    """In a word: what kind of failure it was."""
    reason: str = ""


class Total(Struct, frozen=True):
    """What a row or a column of the matrix comes to: made by an attack, or let by a guardrail."""

    name: str
    id: str
    """A rung's name, or the digest of a submission."""
    score: float
    raw: int
    mean: float | None
    """Over the pairs that were played."""
    played: int
    failed: int


class Tournament(Struct, frozen=True):
    ruleset: str
    budget: str
    seed: int
    level: str
    """Of the jail."""
    attacks: tuple[Total, ...]
    """In the order of the matrix; more is better."""
    guardrails: tuple[Total, ...]
    """In the order of the matrix; less is better."""
    pairings: tuple[Pairing, ...]
    """Row by row: all guardrails for the first attack, and so on."""
    refused: tuple[Refused, ...]
    digest: str
    """Of the results alone."""


# Who enters --------------------------------------------------------------------------------------


def enter(wanted: Sequence[str], scratch: Path, *, whole_ladder: bool = False) -> Entrants:
    """Find entrants: names of rungs, submissions, and directories of submissions.

    Submissions are read into a scratch directory, which must outlive the tournament.
    """
    found: list[Opponent] = []
    refused: list[Refused] = []
    for word in wanted:
        rung = find_rung("attack", word) or find_rung("guardrail", word)
        if rung is not None:
            found.append(rung)
            continue
        for path in _submissions_at(word):
            into = scratch / f"entrant-{len(found) + len(refused)}"
            try:
                found += _parts_of(open_submission(path, into))
            except SubmissionError as error:
                if str(path) == word:
                    raise TournamentError(f"{word}: {error}") from None
                refused.append(Refused(path.name, str(error)))
    for part in PARTS if whole_ladder else ():
        found += ladder(part)
    sides = [_named_apart([one for one in found if one.part == side]) for side in PARTS]
    for side, entrants in zip(PARTS, sides, strict=True):
        if not entrants:
            reason = f" ({refused[0].name}: {refused[0].reason})" if refused else ""
            raise TournamentError(
                f"there is no {side} among the entrants{reason}; "
                "add a submission, the name of a rung, or --ladder"
            )
    attacks, guardrails = sides
    return Entrants(tuple(attacks), tuple(guardrails), tuple(refused))


def _submissions_at(word: str) -> list[Path]:
    """Return a path, or the paths in it if it is a directory of submissions."""
    path = Path(word)
    if not path.exists():
        names = ", ".join(one.name for side in PARTS for one in ladder(side))
        if word.strip().lower() == BASELINE:
            raise TournamentError(
                "the baseline is the search of a defense match, and no attack of its own; "
                "`Go-Explore` is the rung that is most like it"
            )
        raise TournamentError(
            f"there is no {word!r}, neither as a path nor as a rung; the rungs are: {names}"
        )
    if not path.is_dir() or any(path.glob("*.py")):
        return [path]
    inside = [one for one in sorted(path.iterdir()) if one.is_dir() or one.suffix.lower() == ".zip"]
    return [one for one in inside if not one.name.startswith(".")] or [path]


def _parts_of(submission: Submission) -> Iterator[Opponent]:
    for part in PARTS:
        if part in submission.modules:
            yield Opponent(part, submission.name, submission)


def _named_apart(entrants: Sequence[Opponent]) -> list[Opponent]:
    """Leave out who was named twice, and number others of the same name."""
    once = {(one.name, one.id): one for one in entrants}
    taken: dict[str, int] = {}
    named = []
    for one in once.values():
        taken[one.name] = number = taken.get(one.name, 0) + 1
        named.append(one if number == 1 else structs.replace(one, name=f"{one.name} #{number}"))
    return named


# How it is played --------------------------------------------------------------------------------


def hold(  # noqa: PLR0913 - all but two are for those who want something else
    entrants: Entrants,
    ruleset: Ruleset,
    *,
    budget: str = "quick",
    seed: int = PUBLIC_SEED,
    unsafe: bool = False,
    progress: Progress | None = None,
) -> Tournament:
    """Play every attack against every guardrail."""
    level = Level.C if unsafe else probe().level
    sides = (*entrants.attacks, *entrants.guardrails)
    if level is Level.C and not unsafe and any(one.submission for one in sides):
        raise NoJailError(
            "this machine cannot confine a stranger's code; `tiltyard doctor` says what is "
            "missing. For code of your own there is --unsafe-no-sandbox."
        )
    rules = ruleset if budget == "official" else ruleset.quickly()
    table = _Table(generate(seed), rules, progress or NO_PROGRESS, unsafe=unsafe)
    pairs = [(attack, guard) for attack in entrants.attacks for guard in entrants.guardrails]
    table.progress.begin("tournament", rules.attack.steps * len(pairs))
    pairings = tuple(
        table.play(attack, guard, number) for number, (attack, guard) in enumerate(pairs)
    )
    return Tournament(
        ruleset.id,
        budget,
        seed,
        level.value,
        tuple(
            _total(one, [each for each in pairings if each.attack == one.name])
            for one in entrants.attacks
        ),
        tuple(
            _total(one, [each for each in pairings if each.guardrail == one.name])
            for one in entrants.guardrails
        ),
        pairings,
        entrants.refused,
        _digest(rules, seed, pairings),
    )


class _Table:
    """Where pairs sit down, one after the other."""

    def __init__(
        self, scenario: Scenario, rules: Ruleset, progress: Progress, *, unsafe: bool
    ) -> None:
        self._scenario = scenario
        self._rules = rules
        self.progress = progress
        limits = rules.limits
        self._lodging = Lodging(
            unsafe,
            tuple(installed_packages(rules)),
            offense_seconds=limits.offense_seconds,
            defense_seconds=limits.defense_seconds,
        )

    def play(self, attack: Opponent, guardrail: Opponent, number: int) -> Pairing:
        names = attack.name, guardrail.name
        before = number * self._rules.attack.steps

        def tell(progress: SearchStatus) -> None:
            self.progress.step(before + progress.steps, " against ".join(names))

        self.progress.step(before, " against ".join(names))
        try:
            # The attack's house first: its guest is the first to come, and must be the last to go.
            with ExitStack() as stack:
                attacker = self._lodging.maker(attack, stack)()
                match = play_offense(
                    self._scenario,
                    attacker,
                    self._rules,
                    make_guardrail=self._lodging.maker(guardrail, stack),
                    report=tell,
                )
        except GuestError as error:
            call = f" ({error.call})"
            reason = str(error).removesuffix(call) + call
            return Pairing(*names, failure=error.kind, reason=reason)
        except MatchError as error:
            return Pairing(*names, failure="match", reason=str(error))
        score = match.score
        return Pairing(
            *names, score.score, score.raw, score.cells, match.candidates, match.steps, match.digest
        )


def _digest(rules: Ruleset, seed: int, pairings: Sequence[Pairing]) -> str:
    told = [(one.attack, one.guardrail, one.digest, one.failure) for one in pairings]
    return sha256(msgspec.json.encode([rules.digest, seed, told])).hexdigest()


def _total(entrant: Opponent, pairings: Sequence[Pairing]) -> Total:
    scores = [one.score for one in pairings if one.score is not None]
    return Total(
        entrant.name,
        entrant.id,
        fsum(scores),
        sum(one.raw or 0 for one in pairings),
        fsum(scores) / len(scores) if scores else None,
        len(scores),
        len(pairings) - len(scores),
    )
