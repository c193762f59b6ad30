"""An evaluation: a submission through its matches, and the report of it.

Owns what is played, in which order, what identifies a run, and what makes it comparable. Results
depend on a `Job` alone; where and how fast it is played is told beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import fsum
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard import __version__
from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.record import Record
from tiltyard.benign import extended_suite, play, utility_under_attack
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.contracts.attack import AttackCandidate
from tiltyard.contracts.tracks import CLASSES, TRACK_OF, Track
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.jailed_attack import Exchange
from tiltyard.isolation.host.limits import Level
from tiltyard.isolation.host.probe import probe
from tiltyard.isolation.host.session import GuestError
from tiltyard.matches.attack_run import MatchError
from tiltyard.matches.matches import DefenseMatch, OffenseMatch, play_defense, play_offense
from tiltyard.matches.opponents import BASELINE, Lodging
from tiltyard.reporting import builder
from tiltyard.reporting.schema import (
    DefensePart,
    Failure,
    Isolation,
    ModelUse,
    OffensePart,
    Point,
    Report,
    Setting,
    Share,
    Submitted,
)
from tiltyard.rulesets.packages import installed_packages
from tiltyard.runs.job import Job
from tiltyard.runs.parts import KeptTrace, Teller, digest_of, tell_model
from tiltyard.search import Played, SearchStatus
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

MAX_FAULTS_TOLD: Final = 10


class Game(Struct, frozen=True):
    """One scenario to play both matches in."""

    number: int
    scenario: Scenario
    key: str


class Evaluation(Struct, frozen=True):
    report: Report
    traces: tuple[KeptTrace, ...]


def evaluate(
    job: Job,
    *,
    logs: Path | None = None,
    records: "Records | None" = None,
    unsafe: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Play a job's matches. With a directory for logs, an interrupted evaluation goes on."""
    return _Run(job, logs, records or Records(), progress or NO_PROGRESS, unsafe=unsafe).play()


class Records(Struct, frozen=True):
    """Where the exchanges with a model are kept, match by match."""

    root: Path | None = None
    closed: bool = False
    """All that will be asked is there already: no model is wanted."""

    def open(self, game: int) -> Record:
        directory = None if self.root is None else self.root / f"offense-{game}"
        return Record(directory, closed=self.closed)


class _Run:
    """An evaluation at work."""

    def __init__(
        self, job: Job, logs: Path | None, records: Records, progress: Progress, *, unsafe: bool
    ) -> None:
        self.job = job
        self.rules = job.rules
        self.logs = logs
        self.records = records
        self.teller = Teller(job)
        self.progress = progress
        self.level = Level.C if unsafe else probe().level
        limits = job.ruleset.limits
        self.lodging = Lodging(
            unsafe,
            tuple(installed_packages(job.ruleset)),
            "" if job.key is None else job.key.fingerprint,
            limits.offense_seconds,
            limits.defense_seconds,
        )
        self.failures: list[Failure] = []
        self.seconds: dict[str, float] = {}

    def play(self) -> Evaluation:
        games = [*self._games()]
        self._note_missing()
        offense = defense = None
        if "offense" in self.job.tracks:
            offense = self._attempt("offense", lambda: self._offense(games))
        if "defense" in self.job.tracks:
            if not self.job.agent.is_default:
                self.teller.notes.append(
                    "A guardrail always stands against the deterministic agent; to try one with a "
                    "model, there is `tiltyard probe --agent`."
                )
            defense = self._attempt("defense", lambda: self._defense(games))
        return Evaluation(self._report(games, offense, defense), tuple(self.teller.traces))

    def _note_missing(self) -> None:
        """Name a file that is called after a part and has nothing to play in it."""
        submission = self.job.submission
        for part, name in CLASSES.items():
            there = any(file.path == f"{part}.py" for file in submission.files)
            if there and part not in submission.modules:
                track = TRACK_OF[part]
                self.teller.notes.append(
                    f"{part}.py has no class {name}, so {track} was not played."
                )

    def _games(self) -> list[Game]:
        if self.job.scenario is not None:
            return [Game(1, self.job.scenario, "")]
        key = self.job.key
        return [
            Game(number, generate(seed), "" if key is None else key.branch(seed))
            for number, seed in enumerate(self.job.seeds, 1)
        ]

    def _attempt(self, track: Track, match: Callable[[], Any]) -> Any:
        start = monotonic()
        try:
            return match()
        except GuestError as error:
            self.failures.append(
                Failure(
                    track,
                    error.kind,
                    str(error),
                    error.call,
                    error.traceback,
                    error.output,
                    error.official_within(self._lines_of(error.module)),
                )
            )
        except AgentGoneError as error:
            self.failures.append(Failure(track, "agent", str(error), official="agent"))
        except MatchError as error:
            self.failures.append(Failure(track, "match", str(error), official="match"))
        finally:
            self.seconds[track] = round(monotonic() - start, 3)
        return None

    def _lines_of(self, module: str) -> int:
        """Return how many lines a module of the submission has, or an opponent's of that name."""
        try:
            path = self.job.submission.root / module
            return len(path.read_bytes().splitlines())
        except OSError:
            return 0

    # Offense ---------------------------------------------------------------------------------

    def _offense(self, games: Sequence[Game]) -> OffensePart:
        job = self.job
        matches: list[OffenseMatch] = []
        models: list[ModelUse] = []
        # An official run is played twice: what an attack returns must not depend on chance.
        runs = 2 if job.budget == "official" else 1
        choice = job.agent.for_one_of(len(games))
        for game in games:
            self._begin("offense", game, games, job.offense_rules.attack.steps * runs)
            # Houses of its own for each match: their time is the match's.
            with ExitStack() as stack, self._log(f"offense-{game.number}", Exchange) as log:
                record = self.records.open(game.number)
                agent = stack.enter_context(hire(choice, self.rules.model, record))
                # What a model answered is recorded, so nothing else has to be.
                kept = None if job.agent.traits.recorded else log
                matches.append(
                    play_offense(
                        game.scenario,
                        _Again(self.lodging.open(job.submission, "attack", stack), kept),
                        self.rules,
                        key=game.key,
                        make_guardrail=self.lodging.maker(job.guardrail_opponent, stack),
                        agent=agent,
                        runs=runs,
                        report=self._tell,
                        hearing=self._hearing(game, games),
                    )
                )
                used = tell_model(agent)
                models += [] if used is None else [used]
        return self.teller.tell_offense(matches, models)

    # Defense ---------------------------------------------------------------------------------

    def _defense(self, games: Sequence[Game]) -> DefensePart:
        job = self.job
        matches: list[DefenseMatch] = []
        curve: list[Point] = []
        guests = _Guests()
        for game in games:
            self._begin("defense", game, games, self.rules.search.steps)
            curve = []

            def tell(progress: SearchStatus) -> None:
                numbers = progress.steps, progress.interactions, progress.cells, progress.claims
                curve.append(Point(progress.epoch, *numbers))  # noqa: B023 - used at once
                self._tell(progress)

            with ExitStack() as stack, self._log(f"defense-{game.number}", list[Played]) as log:
                attack = None
                if job.attack_opponent.name != BASELINE or job.attack_opponent.submission:
                    attack = self.lodging.maker(job.attack_opponent, stack)()
                guests.house = self.lodging.open(job.submission, "guardrail", stack)
                matches.append(
                    play_defense(
                        game.scenario,
                        guests.make,
                        self.rules,
                        key=game.key,
                        report=tell,
                        log=log,
                        attack=attack,
                    )
                )
        with ExitStack() as stack:
            guests.house = self.lodging.open(job.submission, "guardrail", stack)
            extended, attacked = self._beside(games[0], guests)
        part = self.teller.tell_defense(matches, guests.faults)
        return msgspec.structs.replace(
            part, extended=extended, under_attack=attacked, curve=tuple(curve)
        )

    def _beside(self, game: Game, guests: "_Guests") -> tuple[Share, Share]:
        """Play what is not scored: more tasks, and tasks under attack. One guest does for all."""
        tasks = extended_suite(game.scenario)
        self.progress.begin("extended benign suite", 2 * len(tasks))
        guardrail = guests.lend()
        trials = [play(task, game.scenario, guardrail) for task in tasks]
        self.progress.step(len(tasks), "")
        useful = utility_under_attack(tasks, game.scenario, game.key, guardrail, ruleset=self.rules)
        untouched = sum(not trial.false_positive for trial in trials)
        return Share(untouched, len(trials)), Share(useful.useful, useful.trials)

    # Both ------------------------------------------------------------------------------------

    def _begin(self, track: str, game: Game, games: Sequence[Game], total: int) -> None:
        which = f" {game.number} of {len(games)}" if len(games) > 1 else ""
        self.progress.begin(f"{track}{which}", total)

    def _hearing(self, game: Game, games: Sequence[Game]) -> Callable[[int, int], None]:
        """Return what tells how many candidates were heard of how many."""

        def tell(done: int, total: int) -> None:
            if not done:
                self._begin("verifying candidates", game, games, total)
            self.progress.step(done, "")

        return tell

    def _tell(self, progress: SearchStatus) -> None:
        note = f"{progress.cells:,} cells, {progress.claims:,} claims" if progress.cells else ""
        self.progress.step(progress.steps, note)

    @contextmanager
    def _log(self, name: str, kind: Any) -> Iterator[Log[Any] | None]:
        if self.logs is None:
            yield None
            return
        log: Log[Any] = Log(self.logs / f"{name}.log", kind)
        with log:
            yield log

    def _circumstances(self) -> Iterator[str]:
        """Yield what about this machine makes a result incomparable."""
        if self.lodging.unsafe:
            yield "it was played without a jail"
        elif self.level is not Level.A:
            yield f"the isolation level is {self.level.value}, and only A is comparable"

    def _report(
        self, games: Sequence[Game], offense: OffensePart | None, defense: DefensePart | None
    ) -> Report:
        job = self.job
        parts = [part for part in (offense, defense) if part is not None]
        broken = sorted((failure.track, failure.kind) for failure in self.failures)
        reasons = [*self._circumstances(), *job.departures()]
        reasons += (f"the {failure.track} match was broken off" for failure in self.failures)
        reasons += _inconsistencies(offense, defense)
        submission = job.submission
        agent = job.agent if "offense" in job.tracks else AgentChoice()
        return Report(
            run_id=job.run_id,
            digest=digest_of([[part.digest for part in parts], broken]),
            final_score=None if self.failures else fsum(part.score for part in parts),
            offense=offense,
            defense=defense,
            isolation=Isolation(self.level.value, self.lodging.unsafe),
            comparable=not reasons,
            not_comparable_because=tuple(reasons),
            ruleset=job.ruleset.id,
            setting=Setting(
                ruleset=job.ruleset.id,
                ruleset_digest=job.ruleset.digest,
                budget=job.budget,
                seeds=job.seeds,
                scenarios=tuple(game.scenario.digest for game in games),
                agent=agent.name,
                offense_opponent=job.guardrail_opponent.name,
                defense_opponent=job.attack_opponent.name,
                packages=installed_packages(job.ruleset),
                key="" if job.key is None else job.key.fingerprint,
                official_seeds=0 if job.key is None else len(games),
            ),
            submission=Submitted(
                submission.name,
                submission.digest,
                {file.path: file.size for file in submission.files},
                job.tracks,
            ),
            engine=__version__,
            formula=builder.tell_formula(self.rules),
            failures=tuple(self.failures),
            notes=tuple(self.teller.notes),
            seconds=self.seconds,
        )


def _inconsistencies(offense: OffensePart | None, defense: DefensePart | None) -> Iterator[str]:
    if offense is not None and offense.inconsistent:
        yield "the attack returned something else when it was run again"
    if defense is not None and defense.inconsistent:
        count = defense.inconsistent
        yield f"{count} sampled chains were decided otherwise by a fresh guardrail"


class _Again:
    """An attack whose first run is logged; the runs that it is compared with are not."""

    def __init__(self, house: GuestPool, log: Log[Exchange] | None) -> None:
        self._house = house
        self._log = log

    def run(self, env: Any, config: Any) -> list[AttackCandidate]:
        log, self._log = self._log, None
        return self._house.attack(log).run(env, config)


class _Guests:
    """A submission's guardrails, and what went wrong in them."""

    def __init__(self) -> None:
        self.house: GuestPool | None = None
        """Where they are held at present."""
        self._made: list[RemoteGuardrail] = []

    def make(self) -> RemoteGuardrail:
        assert self.house is not None
        self._made.append(self.house.guardrail())
        return self._made[-1]

    def lend(self) -> Callable[[], RemoteGuardrail]:
        """Return what hands out one guest again and again, as new each time."""
        runner = self.make().runner
        return lambda: RemoteGuardrail(runner)

    @property
    def faults(self) -> list[str]:
        runners: list[Any] = [guardrail.runner for guardrail in self._made]
        told = dict.fromkeys(fault for runner in runners for fault in runner.faults)
        return [*told][:MAX_FAULTS_TOLD]
