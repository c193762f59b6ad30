"""A tournament: every attack against every guardrail.

Each pair plays an offense match with that guardrail in place of the ruleset's. Submissions are
jailed on both sides, with new guests for each pair. If a pair cannot be played, the matrix says
why, and the other pairs go on. No result of a tournament is a competition's score.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import product
from math import fsum
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.record import Record
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.tracks import PARTS, Part
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.failures import Failure, FailureKind, GuestError
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.acceptance import check_part
from tiltyard.matches.offense import play_offense
from tiltyard.matches.opponents import (
    BASELINE,
    GuestSettings,
    Opponent,
    find_rung,
    guest_settings,
    ladder,
)
from tiltyard.matches.settings import MatchError, MatchSettings
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.submissions import Submission, SubmissionError, open_submission
from tiltyard.world.generate import generate


class TournamentError(ValueError):
    """A tournament that cannot be held. The message says what to do about it."""


class Refused(Struct, frozen=True):
    """A submission, found in a directory, that cannot enter; and the reason."""

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
    """The kind of failure, such as `deadline`. Empty when the pair has a score."""
    reason: str = ""


class Total(Struct, frozen=True):
    """The sum of a row or a column: what an attack scored, or what a guardrail let through."""

    name: str
    id: str
    """A rung's name, or the digest of a submission."""
    score: float
    raw: int
    mean: float | None
    """The mean score of the pairs without a failure."""
    played: int
    failed: int


class Tournament(Struct, frozen=True):
    ruleset: str
    budget: str
    seed: int
    agent: str
    level: str
    """The isolation level of the jail."""
    attacks: tuple[Total, ...]
    """In the order of the matrix; more is better."""
    guardrails: tuple[Total, ...]
    """In the order of the matrix; less is better."""
    pairings: tuple[Pairing, ...]
    """Row by row: all guardrails for the first attack, and so on."""
    refused: tuple[Refused, ...]
    digest: str
    """A hash of the results alone."""


def enter(wanted: Sequence[str], scratch: Path, *, whole_ladder: bool = False) -> Entrants:
    """Find entrants by the names of rungs, submissions, and directories of submissions.

    This reads submissions into `scratch`, which must exist until the tournament ends.
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
    """Return the path `word`, or the submissions in it if it is a directory of submissions."""
    path = Path(word)
    if not path.exists():
        names = ", ".join(one.name for side in PARTS for one in ladder(side))
        if word.strip().lower() == BASELINE:
            raise TournamentError(
                "the baseline is the search of a defense match and cannot enter; "
                "the rung `Go-Explore` is closest to it"
            )
        raise TournamentError(
            f"there is no {word!r}, neither as a path nor as a name; the names are: {names}"
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
    """Drop entrants that are named twice, and number different ones of the same name."""
    once = {(one.name, one.id): one for one in entrants}
    taken: dict[str, int] = {}
    named = []
    for one in once.values():
        taken[one.name] = number = taken.get(one.name, 0) + 1
        named.append(one if number == 1 else structs.replace(one, name=f"{one.name} #{number}"))
    return named


class TournamentSettings(Struct, frozen=True):
    """How every pair of a tournament plays."""

    ruleset: Ruleset
    budget: str = "quick"
    """`quick`, or `official` for the ruleset's full budget."""
    seed: int = PUBLIC_SEED
    unsafe: bool = False
    """Run submissions without a jail."""
    agent: AgentChoice = AgentChoice()
    """The agent of all pairs. They share its bounds on requests and cost equally."""

    @property
    def rules(self) -> Ruleset:
        return self.ruleset if self.budget == "official" else self.ruleset.with_quick_budgets()

    @property
    def steps(self) -> int:
        """The attack's budget in one pair."""
        rules = self.rules
        return (rules.with_model() if self.agent.traits.metered else rules).attack.steps


def hold(
    entrants: Entrants, settings: TournamentSettings, progress: Progress = NO_PROGRESS
) -> Tournament:
    """Play every attack against every guardrail."""
    level = _check_jail(entrants, settings)
    rules = settings.rules
    match = MatchSettings(generate(settings.seed), rules)
    guests = guest_settings(rules, unsafe=settings.unsafe)
    pairs = list(product(entrants.attacks, entrants.guardrails))
    agent = settings.agent.for_one_of(len(pairs))
    refusals = _check(entrants, rules, guests)
    progress.begin("tournament", settings.steps * len(pairs))
    pairings = tuple(
        _refused(attack, guardrail, refusals)
        or _play(attack, guardrail, agent, _Table(match, guests, progress, number * settings.steps))
        for number, (attack, guardrail) in enumerate(pairs)
    )
    return Tournament(
        settings.ruleset.id,
        settings.budget,
        settings.seed,
        settings.agent.name,
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
        _digest(rules, settings.seed, pairings),
    )


def _check_jail(entrants: Entrants, settings: TournamentSettings) -> Level:
    level = Level.C if settings.unsafe else probe().level
    sides = (*entrants.attacks, *entrants.guardrails)
    if level is Level.C and not settings.unsafe and any(one.submission for one in sides):
        raise NoJailError(
            "this machine cannot confine the code of a submission; `tiltyard doctor` says what is "
            "missing. To play code that you trust, use --unsafe-no-sandbox."
        )
    return level


def _check(
    entrants: Entrants, rules: Ruleset, guests: GuestSettings
) -> dict[tuple[Part, str], Failure]:
    """Make the check before a match once for each submission. Return the refusals."""
    found: dict[tuple[Part, str], Failure] = {}
    for one in (*entrants.attacks, *entrants.guardrails):
        if one.submission is not None:
            refusal = check_part(one.submission, one.part, rules, guests).refusal()
            if refusal is not None:
                found[one.part, one.name] = refusal
    return found


def _refused(
    attack: Opponent, guardrail: Opponent, refusals: dict[tuple[Part, str], Failure]
) -> Pairing | None:
    """Return a pair that is not played, because the check refused one side."""
    for one in (attack, guardrail):
        failure = refusals.get((one.part, one.name))
        if failure is not None:
            return _failed(attack.name, guardrail.name, failure)
    return None


def _failed(attack: str, guardrail: str, failure: Failure) -> Pairing:
    during = f" ({failure.doing})" if failure.doing else ""
    return Pairing(
        attack, guardrail, failure=failure.kind.value, reason=f"{failure.message}{during}"
    )


class _Table(Struct, frozen=True):
    """What all pairs play with, and how far the tournament is when this pair begins."""

    settings: MatchSettings
    guests: GuestSettings
    progress: Progress
    before: int


class _PairProgress:
    """Turns the progress of one pair into the progress of the whole tournament."""

    def __init__(self, progress: Progress, before: int, pair: str) -> None:
        self._progress = progress
        self._before = before
        self._pair = pair

    def begin(self, what: str, total: int) -> None:
        del what, total
        self.step(0, "")

    def step(self, done: int, note: str) -> None:
        del note
        self._progress.step(self._before + done, self._pair)


def _play(attack: Opponent, guardrail: Opponent, choice: AgentChoice, table: _Table) -> Pairing:
    names = attack.name, guardrail.name
    settings, guests = table.settings, table.guests
    try:
        with ExitStack() as stack:
            # Open the attack's pool first: it closes last, and its guest stays for the match.
            attacker = guests.maker_of(attack, stack)()
            match = play_offense(
                settings,
                attacker,
                make_guardrail=guests.maker_of(guardrail, stack),
                agent=stack.enter_context(hire(choice, settings.ruleset.model, Record())),
                progress=_PairProgress(table.progress, table.before, " against ".join(names)),
            )
    except GuestError as error:
        return _failed(*names, error.failure)
    except AgentGoneError as error:
        return Pairing(*names, failure=FailureKind.AGENT.value, reason=str(error))
    except MatchError as error:
        return Pairing(*names, failure=FailureKind.MATCH.value, reason=str(error))
    score = match.score
    return Pairing(
        *names, score.score, score.raw, score.cells, match.candidates, match.steps, match.digest
    )


def _digest(rules: Ruleset, seed: int, pairings: Sequence[Pairing]) -> str:
    results = [(one.attack, one.guardrail, one.digest, one.failure) for one in pairings]
    return sha256(msgspec.json.encode([rules.digest, seed, results])).hexdigest()


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
