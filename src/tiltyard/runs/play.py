"""Play the matches of a job, in the jail, and report on them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any, Final

from msgspec import Struct, structs

from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.benign import (
    allowed_values,
    extended_suite,
    offending_arguments,
    play,
    utility_under_attack,
)
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.attack import AttackCandidate
from tiltyard.contracts.tracks import PART_OF, TRACKS, Track
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.foundation.log import Log
from tiltyard.foundation.processes import Task, run_tasks
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
from tiltyard.isolation.host.kept_output import KeptOutput
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.acceptance import check_part
from tiltyard.matches.arena import PlayedCell
from tiltyard.matches.defense import DefenseMatch, play_defense
from tiltyard.matches.offense import OffenseMatch, play_offense
from tiltyard.matches.opponents import guest_settings
from tiltyard.matches.settings import MatchError, MatchSettings
from tiltyard.reporting.arena_part import build_arena_part, note_arena
from tiltyard.reporting.match_parts import (
    build_defense_part,
    build_offense_part,
    describe_model,
    keep_traces,
    note_defense,
    note_offense,
)
from tiltyard.reporting.schema import BrokenMatch, Isolation, ModelUse, Share
from tiltyard.runs.arena import arena_rules, count_worlds, play_arena_world
from tiltyard.runs.job import Game, Job
from tiltyard.runs.outcome import Evaluation, TrackOutcome, conclude
from tiltyard.runs.stage import NOWHERE, Places, Stage
from tiltyard.search import Played as Searched

MAX_FAULTS_SHOWN: Final = 10


def play_job(
    job: Job,
    *,
    places: Places = NOWHERE,
    unsafe: bool = False,
    progress: Progress = NO_PROGRESS,
    at_once: int = 1,
) -> Evaluation:
    """Play the matches of a job. With logs from an interrupted job, continue it.

    An official job plays `at_once` of its worlds at the same time, with the same result.
    """
    guests = guest_settings(job.ruleset, key=job.worlds.fingerprint, unsafe=unsafe)
    stage = Stage(job, job.games(), guests, places, progress)
    attempts = [_prepare(stage, track) for track in TRACKS if track in job.tracks]
    if at_once > 1 and _can_split(stage):
        results = _play_together(attempts, at_once, progress)
    else:
        results = [_play_in_turn(attempt, progress) for attempt in attempts]
    outcomes = [
        _conclude_attempt(attempt, played)
        for attempt, played in zip(attempts, results, strict=True)
    ]
    level = Level.C if unsafe else probe().level
    return conclude(job, stage.games, outcomes, Isolation(level.value, unsafe))


class Played(Struct, frozen=True):
    """What one part of a track returned, or why it failed."""

    value: Any = None
    faults: tuple[GuardrailFault, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0


class Attempt(Struct, frozen=True):
    """A track, and the parts to play: its matches, and what is played beside them."""

    stage: Stage
    track: Track
    parts: tuple[Task, ...]
    """They share nothing, so their order and their processes do not matter."""
    refusal: Failure | None
    seconds: float
    """How long the check before the match took."""


def _can_split(stage: Stage) -> bool:
    """Return whether parts can play at the same time.

    A practice run keeps the output of all parts together, and agents other than the deterministic
    one may keep a state or limit their requests.
    """
    return not stage.is_practice and stage.job.agent.traits.pure


def _prepare(stage: Stage, track: Track) -> Attempt:
    """Check a track's part of the submission, and list what to play."""
    start = monotonic()
    stage = structs.replace(stage, output=KeptOutput() if stage.is_practice else None)
    try:
        refusal = _check(stage, track)
    except GuestError as error:
        refusal = error.failure
    parts = (
        () if refusal else _offense_parts(stage) if track == "offense" else _defense_parts(stage)
    )
    return Attempt(stage, track, tuple(parts), refusal, monotonic() - start)


def _offense_parts(stage: Stage) -> Iterator[Task]:
    choice = stage.job.agent.for_one_of(len(stage.games))
    for game in stage.games:
        yield _part(f"offense {game.number}", "offense", _play_offense_game, stage, game, choice)


def _defense_parts(stage: Stage) -> Iterator[Task]:
    if stage.job.rules.arena is not None:
        for number in range(count_worlds(stage)):
            yield _part(f"arena {number + 1}", "defense", _play_arena, stage, number)
        return
    for game in stage.games:
        yield _part(f"defense {game.number}", "defense", _play_defense_game, stage, game)
    yield _part("extended benign suite", "defense", _play_unscored, stage)


def _part(name: str, track: Track, play_part: Callable[..., Any], stage: Stage, *rest: Any) -> Task:
    def run(progress: Progress) -> Played:
        start = monotonic()
        guardrails = _Guardrails()
        try:
            value = play_part(structs.replace(stage, progress=progress), *rest, guardrails)
        except (GuestError, AgentGoneError, MatchError) as error:
            return Played(failure=_failure_of(error), seconds=monotonic() - start)
        return Played(value, tuple(guardrails.take_faults()), seconds=monotonic() - start)

    def lost(reason: str) -> Played:
        return Played(failure=Failure(FailureKind.DIED, reason))

    return Task(name, run, lost, track)


def _failure_of(error: GuestError | AgentGoneError | MatchError) -> Failure:
    if isinstance(error, GuestError):
        return error.failure
    kind = FailureKind.AGENT if isinstance(error, AgentGoneError) else FailureKind.MATCH
    return Failure(kind, str(error))


def _has_failed(played: Played) -> bool:
    return played.failure is not None


def _play_in_turn(attempt: Attempt, progress: Progress) -> list[Played]:
    """Play the parts of a track one after the other, up to the first that fails."""
    results: list[Played] = []
    for part in attempt.parts:
        results.append(part.run(progress))
        if _has_failed(results[-1]):
            break
    return results


def _play_together(
    attempts: Sequence[Attempt], at_once: int, progress: Progress
) -> list[list[Played]]:
    """Play the parts of all tracks in processes. Defense comes first, because it takes longer."""
    order = sorted(attempts, key=lambda attempt: attempt.track)
    parts = [part for attempt in order for part in attempt.parts]
    played = iter(run_tasks(parts, at_once, progress, _has_failed))
    results = {attempt.track: [next(played) for _ in attempt.parts] for attempt in order}
    return [[one for one in results[attempt.track] if one is not None] for attempt in attempts]


def _conclude_attempt(attempt: Attempt, played: Sequence[Played]) -> TrackOutcome:
    """Make the outcome of a track. If a part failed, it is the first failure."""
    start = monotonic()
    stage, track = attempt.stage, attempt.track
    failure = attempt.refusal or next((one.failure for one in played if one.failure), None)
    if failure is not None:
        broken = BrokenMatch(**structs.asdict(failure), track=track)
        outcome = TrackOutcome(track, failure=broken)
    else:
        outcome = _CONCLUDE[track](stage, played)
    seconds = attempt.seconds + sum(one.seconds for one in played) + monotonic() - start
    output = "" if stage.output is None else stage.output.text()
    return structs.replace(outcome, output=output, seconds=round(seconds, 3))


def _check(stage: Stage, track: Track) -> Failure | None:
    """Return why the match is not played: what `tiltyard validate` refuses gets no score."""
    job = stage.job
    return check_part(job.submission, PART_OF[track], job.ruleset, stage.guests).refusal()


def _play_offense_game(
    stage: Stage, game: Game, choice: AgentChoice, _guardrails: "_Guardrails"
) -> tuple[OffenseMatch, ModelUse | None]:
    job, guests = stage.job, stage.guests
    # An official attack runs twice: its candidates must not depend on chance.
    attack_runs = 2 if job.budget == "official" else 1
    settings = MatchSettings(game.scenario, job.rules, game.key, attack_runs=attack_runs)
    # Every match opens its own pools: the deadline of a pool is that of one match.
    with ExitStack() as stack, stage.open_log(f"offense-{game.number}", Exchange) as log:
        agent = stack.enter_context(hire(choice, job.rules.model, stage.places.records.open(game)))
        pool = stage.open_pool("attack", stack)
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


def _play_defense_game(stage: Stage, game: Game, guardrails: "_Guardrails") -> DefenseMatch:
    job, guests = stage.job, stage.guests
    settings = MatchSettings(game.scenario, job.rules, game.key, batteries=stage.places.batteries)
    with ExitStack() as stack, stage.open_log(f"defense-{game.number}", list[Searched]) as log:
        opponent = job.attack_opponent
        attack = None if opponent.is_baseline else guests.maker_of(opponent, stack)()
        pool = stage.open_pool("guardrail", stack)
        return play_defense(
            settings,
            guardrails.made_by(pool),
            attack=attack,
            log=log,
            progress=stage.progress_of(game),
        )


def _play_arena(stage: Stage, number: int, _guardrails: "_Guardrails") -> list[PlayedCell]:
    return play_arena_world(stage, number)


def _play_unscored(stage: Stage, guardrails: "_Guardrails") -> tuple[Share, Share]:
    """Play the extended suite, plain and under attack, with one guest for all tasks."""
    job, game = stage.job, stage.games[0]
    tasks = extended_suite(game.scenario)
    stage.progress.begin("extended benign suite", 2 * len(tasks))
    with ExitStack() as stack:
        pool = stage.open_pool("guardrail", stack)
        runner = guardrails.made_by(pool)().runner

        def make() -> RemoteGuardrail:
            return RemoteGuardrail(runner)

        trials = [play(task, game.scenario, make) for task in tasks]
        stage.progress.step(len(tasks), "")
        useful = utility_under_attack(tasks, game.scenario, game.key, make, ruleset=job.rules)
    passed = sum(not trial.false_positive for trial in trials)
    return Share(passed, len(trials)), Share(useful.useful, useful.trials)


def _conclude_offense(stage: Stage, played: Sequence[Played]) -> TrackOutcome:
    job, rules = stage.job, stage.job.offense_rules
    matches = [one.value[0] for one in played]
    models = [one.value[1] for one in played if one.value[1] is not None]
    part = build_offense_part(matches, models, job.guardrail_opponent.name, rules)
    traces = keep_traces(matches, [found.id for found in part.found], rules)
    return TrackOutcome("offense", part, tuple(note_offense(part)), traces)


def _conclude_arena(stage: Stage, played: Sequence[Played]) -> TrackOutcome:
    worlds = arena_rules(stage).worlds
    cells = [cell for one in played[:worlds] for cell in one.value]
    part = build_arena_part(
        cells,
        _each_once([fault for cell in cells for fault in cell.faults]),
        worlds=worlds,
        tasks=stage.job.tasks,
        with_lost=stage.is_practice,
        public=[cell for one in played[worlds:] for cell in one.value],
    )
    return TrackOutcome("defense", part, tuple(note_arena(part)))


def _conclude_defense(stage: Stage, played: Sequence[Played]) -> TrackOutcome:
    if stage.job.rules.arena is not None:
        return _conclude_arena(stage, played)
    job, guardrails = stage.job, _Guardrails()
    *games, unscored = played
    matches = [one.value for one in games]
    extended, under_attack = unscored.value
    offending = _find_offending(stage, guardrails, matches[0]) if stage.is_practice else {}
    found = [*(fault for one in played for fault in one.faults), *guardrails.take_faults()]
    faults = _each_once(found)
    part = build_defense_part(matches, faults, job.attack_opponent.name, job.rules, offending)
    part = structs.replace(part, extended=extended, under_attack=under_attack)
    traces = keep_traces(matches, [found.id for found in part.found], job.rules)
    return TrackOutcome("defense", part, tuple(note_defense(matches, faults)), traces)


_CONCLUDE: Final[dict[Track, Callable[[Stage, Sequence[Played]], TrackOutcome]]] = {
    "offense": _conclude_offense,
    "defense": _conclude_defense,
}


def _find_offending(
    stage: Stage, guardrails: "_Guardrails", match: DefenseMatch
) -> dict[int, tuple[str, ...]]:
    """Return the arguments that the guardrail objects to, by the number of the failed trial."""
    failed = {number: one for number, one in enumerate(match.trials) if one.stopped}
    if not failed:
        return {}
    stage.progress.begin("arguments of stopped calls", len(failed))
    found: dict[int, tuple[str, ...]] = {}
    game = stage.games[0]
    settings = MatchSettings(game.scenario, stage.job.rules, game.key)
    with ExitStack() as stack, suppress(GuestError):
        runner = guardrails.made_by(stage.open_pool("guardrail", stack))().runner
        allowed = allowed_values(match.trials)
        for done, (number, trial) in enumerate(failed.items(), 1):
            place = settings.in_scenario(match.suite.scenario_of(trial.task))
            world = place.world_of(trial.task.messages)
            found[number] = offending_arguments(
                trial, world, lambda: RemoteGuardrail(runner), allowed
            )
            stage.progress.step(done, "")
    return found


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
        return _each_once(
            [fault for guardrail in self._made for fault in guardrail.runner.take_faults()]
        )


def _each_once(faults: Sequence[GuardrailFault]) -> list[GuardrailFault]:
    found: dict[str, GuardrailFault] = {}
    for fault in faults:
        found.setdefault(fault.text, fault)
    return [*found.values()][:MAX_FAULTS_SHOWN]
