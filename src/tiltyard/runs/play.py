"""Play the matches of a job, in the jail, and report on them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.record import Record
from tiltyard.benign import extended_suite, play, utility_under_attack
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.attack import AttackCandidate
from tiltyard.contracts.tracks import PART_OF, TRACKS, Track
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.failures import (
    Failure,
    FailureKind,
    GuardrailFault,
    GuestError,
)
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.jailed_attack import Exchange
from tiltyard.isolation.host.jailed_guardrail import JailedGuardrail
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.acceptance import check_part
from tiltyard.matches.defense import DefenseMatch, play_defense
from tiltyard.matches.offense import OffenseMatch, play_offense
from tiltyard.matches.opponents import GuestSettings, guest_settings
from tiltyard.matches.settings import MatchError, MatchSettings
from tiltyard.reporting.match_parts import (
    build_defense_part,
    build_offense_part,
    describe_model,
    keep_traces,
    note_defense,
    note_offense,
)
from tiltyard.reporting.schema import BrokenMatch, Isolation, ModelUse, Share
from tiltyard.runs.job import Game, Job
from tiltyard.runs.outcome import Evaluation, TrackOutcome, conclude
from tiltyard.search import Played

MAX_FAULTS_SHOWN: Final = 10


class Records(Struct, frozen=True):
    """Where the exchanges with a model are kept, one directory for each match."""

    root: Path | None = None
    """None keeps them in memory."""
    closed: bool = False
    """Play from the record alone: no model is asked, and a missing exchange is an error."""

    def open(self, game: Game) -> Record:
        directory = None if self.root is None else self.root / f"offense-{game.number}"
        return Record(directory, closed=self.closed)


class Places(Struct, frozen=True):
    """Where the matches of a job keep what they need again."""

    logs: Path | None = None
    """The directory to continue an interrupted job from. None keeps no logs."""
    records: Records = Records()
    batteries: Path | None = None
    """The directory of the batteries of defense matches. None keeps them in memory."""


class Stage(Struct, frozen=True):
    """A job, and everything else that its matches need."""

    job: Job
    games: tuple[Game, ...]
    guests: GuestSettings
    places: "Places"
    progress: Progress

    def progress_of(self, game: Game) -> Progress:
        return _GameProgress(self.progress, game, len(self.games))

    @contextmanager
    def open_log(self, name: str, kind: Any) -> Iterator[Log[Any] | None]:
        if self.places.logs is None:
            yield None
            return
        log: Log[Any] = Log(self.places.logs / f"{name}.log", kind)
        with log:
            yield log


NOWHERE: Final = Places()


def play_job(
    job: Job,
    *,
    places: Places = NOWHERE,
    unsafe: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Evaluation:
    """Play the matches of a job. With logs from an interrupted job, continue it."""
    guests = guest_settings(job.ruleset, key=job.worlds.fingerprint, unsafe=unsafe)
    stage = Stage(job, job.games(), guests, places, progress)
    outcomes = [_attempt(stage, track) for track in TRACKS if track in job.tracks]
    level = Level.C if unsafe else probe().level
    return conclude(job, stage.games, outcomes, Isolation(level.value, unsafe))


def _attempt(stage: Stage, track: Track) -> TrackOutcome:
    """Play one track. If a match stops before its end, return the failure instead."""
    start = monotonic()
    try:
        refusal = _check(stage, track)
        if refusal is not None:
            outcome = _broken(track, refusal)
        else:
            outcome = _play_offense(stage) if track == "offense" else _play_defense(stage)
    except GuestError as error:
        outcome = _broken(track, error.failure)
    except AgentGoneError as error:
        outcome = _broken(track, Failure(FailureKind.AGENT, str(error)))
    except MatchError as error:
        outcome = _broken(track, Failure(FailureKind.MATCH, str(error)))
    return structs.replace(outcome, seconds=round(monotonic() - start, 3))


def _check(stage: Stage, track: Track) -> Failure | None:
    """Return why the match is not played: what `tiltyard validate` refuses gets no score."""
    job = stage.job
    return check_part(job.submission, PART_OF[track], job.ruleset, stage.guests).refusal()


def _broken(track: Track, failure: Failure) -> TrackOutcome:
    return TrackOutcome(track, failure=BrokenMatch(**structs.asdict(failure), track=track))


def _play_offense(stage: Stage) -> TrackOutcome:
    job, rules = stage.job, stage.job.offense_rules
    choice = job.agent.for_one_of(len(stage.games))
    played = [_play_offense_game(stage, game, choice) for game in stage.games]
    matches = [match for match, _ in played]
    models = [model for _, model in played if model is not None]
    part = build_offense_part(matches, models, job.guardrail_opponent.name, rules)
    traces = keep_traces(matches, [found.id for found in part.found], rules)
    return TrackOutcome("offense", part, tuple(note_offense(part)), traces)


def _play_offense_game(
    stage: Stage, game: Game, choice: AgentChoice
) -> tuple[OffenseMatch, ModelUse | None]:
    job, guests = stage.job, stage.guests
    # An official attack runs twice: its candidates must not depend on chance.
    attack_runs = 2 if job.budget == "official" else 1
    settings = MatchSettings(game.scenario, job.rules, game.key, attack_runs=attack_runs)
    # Every match opens its own pools: the deadline of a pool is that of one match.
    with ExitStack() as stack, stage.open_log(f"offense-{game.number}", Exchange) as log:
        agent = stack.enter_context(hire(choice, job.rules.model, stage.places.records.open(game)))
        pool = guests.open_pool(job.submission, "attack", stack)
        match = play_offense(
            settings,
            # A log is only good for an agent that would do the same again. A model's answers are
            # in its record, and a user's agent may have changed since.
            _AttackOfPool(pool, log if choice.traits.pure else None),
            make_guardrail=guests.maker_of(job.guardrail_opponent, stack),
            agent=agent,
            progress=stage.progress_of(game),
        )
        return match, describe_model(agent)


def _play_defense(stage: Stage) -> TrackOutcome:
    job, guardrails = stage.job, _Guardrails()
    matches = [_play_defense_game(stage, game, guardrails) for game in stage.games]
    extended, under_attack = _play_unscored(stage, guardrails)
    faults = guardrails.take_faults()
    part = build_defense_part(matches, faults, job.attack_opponent.name, job.rules)
    part = structs.replace(part, extended=extended, under_attack=under_attack)
    traces = keep_traces(matches, [found.id for found in part.found], job.rules)
    return TrackOutcome("defense", part, tuple(note_defense(matches, faults)), traces)


def _play_defense_game(stage: Stage, game: Game, guardrails: "_Guardrails") -> DefenseMatch:
    job, guests = stage.job, stage.guests
    settings = MatchSettings(game.scenario, job.rules, game.key, batteries=stage.places.batteries)
    with ExitStack() as stack, stage.open_log(f"defense-{game.number}", list[Played]) as log:
        opponent = job.attack_opponent
        attack = None if opponent.is_baseline else guests.maker_of(opponent, stack)()
        pool = guests.open_pool(job.submission, "guardrail", stack)
        return play_defense(
            settings,
            guardrails.made_by(pool),
            attack=attack,
            log=log,
            progress=stage.progress_of(game),
        )


def _play_unscored(stage: Stage, guardrails: "_Guardrails") -> tuple[Share, Share]:
    """Play the extended suite, plain and under attack, with one guest for all tasks."""
    job, game = stage.job, stage.games[0]
    tasks = extended_suite(game.scenario)
    stage.progress.begin("extended benign suite", 2 * len(tasks))
    with ExitStack() as stack:
        pool = stage.guests.open_pool(job.submission, "guardrail", stack)
        runner = guardrails.made_by(pool)().runner

        def make() -> RemoteGuardrail:
            return RemoteGuardrail(runner)

        trials = [play(task, game.scenario, make) for task in tasks]
        stage.progress.step(len(tasks), "")
        useful = utility_under_attack(tasks, game.scenario, game.key, make, ruleset=job.rules)
    passed = sum(not trial.false_positive for trial in trials)
    return Share(passed, len(trials)), Share(useful.useful, useful.trials)


class _AttackOfPool:
    """A jailed attack. Its first run is logged; the runs that repeat it are not."""

    def __init__(self, pool: GuestPool, log: Log[Exchange] | None) -> None:
        self._pool = pool
        self._log = log

    def run(self, env: Any, config: Any) -> list[AttackCandidate]:
        log, self._log = self._log, None
        return self._pool.attack(log).run(env, config)


class _Guardrails:
    """Makes a submission's guardrails, and remembers them to read their faults at the end."""

    def __init__(self) -> None:
        self._made: list[JailedGuardrail] = []

    def made_by(self, pool: GuestPool) -> Callable[[], RemoteGuardrail]:
        def make() -> RemoteGuardrail:
            self._made.append(pool.guardrail())
            return self._made[-1]

        return make

    def take_faults(self) -> list[GuardrailFault]:
        """Return the first errors inside the guardrails, each text once."""
        found: dict[str, GuardrailFault] = {}
        for guardrail in self._made:
            for fault in guardrail.runner.take_faults():
                found.setdefault(fault.text, fault)
        return [*found.values()][:MAX_FAULTS_SHOWN]


class _GameProgress:
    """Adds the number of a game to the name of each stage, as in `offense 2 of 3`."""

    def __init__(self, progress: Progress, game: Game, games: int) -> None:
        self._suffix = f" {game.number} of {games}" if games > 1 else ""
        self._progress = progress

    def begin(self, what: str, total: int) -> None:
        self._progress.begin(f"{what}{self._suffix}", total)

    def step(self, done: int, note: str) -> None:
        self._progress.step(done, note)
