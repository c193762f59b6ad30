"""An evaluation: a submission through its matches, and the report of it.

Owns what is played, in which order, what identifies a run, and what makes it comparable. Results
depend on a `Job` alone; where and how fast it is played is told beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from math import fsum
from pathlib import Path
from time import monotonic
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from tiltyard import __version__
from tiltyard.attack import AttackCandidate
from tiltyard.benign import extended_suite, play, utility_under_attack
from tiltyard.competition.job import Job, packages_of
from tiltyard.competition.matches import (
    DefenseMatch,
    MatchError,
    OffenseMatch,
    play_defense,
    play_offense,
)
from tiltyard.competition.opponents import BASELINE, Lodging
from tiltyard.guardrail import RemoteGuardrail
from tiltyard.isolation.attack import Exchange
from tiltyard.isolation.house import GuestHouse
from tiltyard.isolation.limits import Level
from tiltyard.isolation.probing import probe
from tiltyard.isolation.session import GuestError
from tiltyard.isolation.submissions import CLASSES, Track
from tiltyard.judge.findings import Finding as Judged
from tiltyard.recording import Log
from tiltyard.reporting import telling
from tiltyard.reporting.schema import (
    AttackPart,
    DefensePart,
    Failure,
    Finding,
    Isolation,
    Point,
    Report,
    Setting,
    Share,
    Submitted,
)
from tiltyard.search import Played, Progress
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

TRACK_NAMES: Final[dict[Track, str]] = {"attack": "offense", "guardrail": "defense"}
MAX_FAULTS_TOLD: Final = 10


class Watcher(Protocol):
    """Whoever wants to know how an evaluation is going."""

    def begin(self, what: str, total: int) -> None:
        """Something begins, and will take so many steps."""

    def step(self, done: int, note: str) -> None:
        """So many steps of it are done."""


class Silence:
    """Nobody wants to know."""

    def begin(self, what: str, total: int) -> None: ...

    def step(self, done: int, note: str) -> None: ...


class Game(Struct, frozen=True):
    """One scenario to play both matches in."""

    number: int
    scenario: Scenario
    key: str


class KeptTrace(Struct, frozen=True):
    """A finding's trace, to be kept beside the report."""

    name: str
    data: bytes


class Evaluation(Struct, frozen=True):
    report: Report
    traces: tuple[KeptTrace, ...]


def evaluate(
    job: Job,
    *,
    logs: Path | None = None,
    unsafe: bool = False,
    watcher: Watcher | None = None,
) -> Evaluation:
    """Play a job's matches. With a directory for logs, an interrupted evaluation goes on."""
    return _Run(job, logs, unsafe, watcher or Silence()).play()


class _Run:
    """An evaluation at work."""

    def __init__(self, job: Job, logs: Path | None, unsafe: bool, watcher: Watcher) -> None:  # noqa: FBT001
        self.job = job
        self.rules = job.rules
        self.logs = logs
        self.watcher = watcher
        self.level = Level.C if unsafe else probe().level
        limits = job.ruleset.limits
        self.lodging = Lodging(
            unsafe,
            tuple(packages_of(job.ruleset)),
            "" if job.key is None else job.key.fingerprint,
            limits.offense_seconds,
            limits.defense_seconds,
        )
        self.failures: list[Failure] = []
        self.notes: list[str] = []
        self.traces: list[KeptTrace] = []
        self.seconds: dict[str, float] = {}

    def play(self) -> Evaluation:
        games = [*self._games()]
        self._note_missing()
        attack = defense = None
        if "attack" in self.job.tracks:
            attack = self._attempt("offense", lambda: self._offense(games))
        if "guardrail" in self.job.tracks:
            defense = self._attempt("defense", lambda: self._defense(games))
        return Evaluation(self._report(games, attack, defense), tuple(self.traces))

    def _note_missing(self) -> None:
        """Name a file that is called after a track and has nothing to play in it."""
        submission = self.job.submission
        for track, name in CLASSES.items():
            there = any(file.path == f"{track}.py" for file in submission.files)
            if there and track not in submission.modules:
                match = TRACK_NAMES[track]
                self.notes.append(f"{track}.py has no class {name}, so {match} was not played.")

    def _games(self) -> list[Game]:
        if self.job.scenario is not None:
            return [Game(1, self.job.scenario, "")]
        key = self.job.key
        return [
            Game(number, generate(seed), "" if key is None else key.branch(seed))
            for number, seed in enumerate(self.job.seeds, 1)
        ]

    def _attempt(self, track: str, match: Callable[[], Any]) -> Any:
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

    def _offense(self, games: Sequence[Game]) -> AttackPart:
        job = self.job
        matches: list[OffenseMatch] = []
        # An official run is played twice: what an attack returns must not depend on chance.
        runs = 2 if job.budget == "official" else 1
        for game in games:
            self._begin("offense", game, games, self.rules.attack.steps * runs)
            # Houses of its own for each match: their time is the match's.
            with ExitStack() as stack, self._log(f"offense-{game.number}", Exchange) as log:
                matches.append(
                    play_offense(
                        game.scenario,
                        _Again(self.lodging.open(job.submission, "attack", stack), log),
                        self.rules,
                        key=game.key,
                        make_guardrail=self.lodging.maker(job.guardrail_opponent, stack),
                        runs=runs,
                        report=self._tell,
                    )
                )
        return self._tell_offense(matches)

    def _tell_offense(self, matches: Sequence[OffenseMatch]) -> AttackPart:
        verdicts = [match.verdict for match in matches]
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        refused = telling.count_refused(one for verdict in verdicts for one in verdict.refused)
        candidates = sum(match.candidates for match in matches)
        if not candidates:
            self.notes.append("The attack returned no candidates, so there was nothing to judge.")
        elif sum(refused.values()) == candidates:
            reason = next(iter(refused))
            self.notes.append(f"Every candidate was refused; the first reason: {reason}.")
        elif not findings:
            self.notes.append(
                "No candidate broke anything: the opponent held, or nothing happened."
            )
        found = self._tell_findings(findings, "A") if len(matches) == 1 else ()
        return AttackPart(
            score=_mean(match.score.score for match in matches),
            raw=_mean(match.score.raw for match in matches),
            score_volume=_mean(match.score.score_volume for match in matches),
            raw_volume=_mean(match.score.raw_volume for match in matches),
            findings=sum(count for verdict in verdicts for _, count in verdict.weights),
            findings_by_predicate=_add_up(dict(verdict.weights) for verdict in verdicts),
            cores=_mean(match.score.cores for match in matches),
            unique_cells=_mean(match.score.cells for match in matches),
            opponent=self.job.guardrail_opponent.name,
            candidates=candidates,
            refused=refused,
            steps=sum(match.steps for match in matches),
            budget=self.rules.attack.steps * len(matches),
            inconsistent=sum(match.inconsistent for match in matches),
            found=found,
            digest=_digest([match.digest for match in matches]),
        )

    # Defense ---------------------------------------------------------------------------------

    def _defense(self, games: Sequence[Game]) -> DefensePart:
        job = self.job
        matches: list[DefenseMatch] = []
        curve: list[Point] = []
        guests = _Guests()
        for game in games:
            self._begin("defense", game, games, self.rules.search.steps)
            curve = []

            def tell(progress: Progress) -> None:
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
                        salt=job.submission.digest,
                    )
                )
        with ExitStack() as stack:
            guests.house = self.lodging.open(job.submission, "guardrail", stack)
            extended, attacked = self._beside(games[0], guests)
        part = self._tell_defense(matches, guests.faults)
        return msgspec.structs.replace(
            part, extended=extended, under_attack=attacked, curve=tuple(curve)
        )

    def _beside(self, game: Game, guests: "_Guests") -> tuple[Share, Share]:
        """Play what is not scored: more tasks, and tasks under attack. One guest does for all."""
        tasks = extended_suite(game.scenario)
        self.watcher.begin("extended benign suite", 2 * len(tasks))
        guardrail = guests.lend()
        trials = [play(task, game.scenario, guardrail) for task in tasks]
        self.watcher.step(len(tasks), "")
        useful = utility_under_attack(tasks, game.scenario, game.key, guardrail, ruleset=self.rules)
        untouched = sum(not trial.false_positive for trial in trials)
        return Share(untouched, len(trials)), Share(useful.useful, useful.trials)

    def _tell_defense(self, matches: Sequence[DefenseMatch], faults: Sequence[str]) -> DefensePart:
        trials = [trial for match in matches for trial in match.trials]
        findings = [finding for match in matches for finding in match.verdict.findings]
        failed = sum(trial.false_positive for trial in trials)
        if failed == len(trials):
            self.notes.append("The guardrail let no benign task through: does it deny everything?")
        if faults:
            self.notes.append(f"The guardrail failed in {len(faults)} or more calls: {faults[0]}")
        one = matches[0] if len(matches) == 1 else None
        found = () if one is None else self._tell_findings(findings, "D")
        explored = [match.exploration for match in matches]
        return DefensePart(
            score=_mean(match.score.score for match in matches),
            breaches=_mean(match.score.breaches for match in matches),
            false_positives=_mean(match.score.false_positives for match in matches),
            benign_trials=matches[0].score.benign_trials,
            breaches_by_predicate=_add_up(
                telling.count_breaches(match.verdict.cells) for match in matches
            ),
            false_positives_by_operation=telling.count_operations(trials),
            opponent=self.job.attack_opponent.name,
            steps=sum(found.steps for found in explored),
            budget=self.rules.search.steps * len(matches),
            interactions=sum(found.interactions for found in explored),
            cells=sum(len(found.archive) for found in explored),
            inconsistent=sum(match.inconsistent for match in matches),
            faults=tuple(faults),
            found=found,
            trials=() if one is None else tuple(telling.tell_trials(one.trials)),
            archive=() if one is None else telling.tell_archive(one.exploration.archive, findings),
            digest=_digest([match.digest for match in matches]),
        )

    # Both ------------------------------------------------------------------------------------

    def _begin(self, track: str, game: Game, games: Sequence[Game], total: int) -> None:
        which = f" {game.number} of {len(games)}" if len(games) > 1 else ""
        self.watcher.begin(f"{track}{which}", total)

    def _tell(self, progress: Progress) -> None:
        note = f"{progress.cells:,} cells, {progress.claims:,} claims" if progress.cells else ""
        self.watcher.step(progress.steps, note)

    @contextmanager
    def _log(self, name: str, kind: Any) -> Iterator[Log[Any] | None]:
        if self.logs is None:
            yield None
            return
        log: Log[Any] = Log(self.logs / f"{name}.log", kind)
        with log:
            yield log

    def _tell_findings(self, findings: Sequence[Judged], prefix: str) -> tuple[Finding, ...]:
        """Tell what was found, and keep its traces."""
        told = telling.tell_findings(findings, prefix, self.rules)
        ordered = telling.in_order(findings, self.rules)
        self.traces += (
            KeptTrace(one.id, finding.trace.to_json())
            for one, finding in zip(told, ordered, strict=True)
        )
        return told

    def _circumstances(self) -> Iterator[str]:
        """Yield what about this machine makes a result incomparable."""
        if self.lodging.unsafe:
            yield "it was played without a jail"
        elif self.level is not Level.A:
            yield f"the isolation level is {self.level.value}, and only A is comparable"

    def _report(
        self, games: Sequence[Game], attack: AttackPart | None, defense: DefensePart | None
    ) -> Report:
        job = self.job
        parts = [part for part in (attack, defense) if part is not None]
        broken = sorted((failure.track, failure.kind) for failure in self.failures)
        reasons = [*self._circumstances(), *job.departures()]
        reasons += (f"the {failure.track} match was broken off" for failure in self.failures)
        reasons += _inconsistencies(attack, defense)
        submission = job.submission
        return Report(
            run_id=job.run_id,
            digest=_digest([[part.digest for part in parts], broken]),
            final_score=None if self.failures else fsum(part.score for part in parts),
            attack=attack,
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
                agent=job.ruleset.play.agent,
                offense_opponent=job.guardrail_opponent.name,
                defense_opponent=job.attack_opponent.name,
                packages=packages_of(job.ruleset),
                key="" if job.key is None else job.key.fingerprint,
                official_seeds=0 if job.key is None else len(games),
            ),
            submission=Submitted(
                submission.name,
                submission.digest,
                {file.path: file.size for file in submission.files},
                tuple(TRACK_NAMES[track] for track in job.tracks),
            ),
            engine=__version__,
            formula=telling.tell_formula(self.rules),
            failures=tuple(self.failures),
            notes=tuple(self.notes),
            seconds=self.seconds,
        )


def _inconsistencies(attack: AttackPart | None, defense: DefensePart | None) -> Iterator[str]:
    if attack is not None and attack.inconsistent:
        yield "the attack returned something else when it was run again"
    if defense is not None and defense.inconsistent:
        count = defense.inconsistent
        yield f"{count} sampled chains were decided otherwise by a fresh guardrail"


class _Again:
    """An attack whose first run is logged; the runs that it is compared with are not."""

    def __init__(self, house: GuestHouse, log: Log[Exchange] | None) -> None:
        self._house = house
        self._log = log

    def run(self, env: Any, config: Any) -> list[AttackCandidate]:
        log, self._log = self._log, None
        return self._house.attack(log).run(env, config)


class _Guests:
    """A submission's guardrails, and what went wrong in them."""

    def __init__(self) -> None:
        self.house: GuestHouse | None = None
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


def _mean(values: Any) -> float:
    numbers = [*values]
    return numbers[0] if len(numbers) == 1 else fsum(numbers) / len(numbers)


def _add_up(counts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items()))


def _digest(content: Any) -> str:
    return sha256(msgspec.json.encode(content)).hexdigest()
