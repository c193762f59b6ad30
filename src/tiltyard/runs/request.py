"""A run: from what a user asked for to a directory with a report in it.

Owns the way from names and paths to a `Job`, that a finished run is returned and not played again,
and that an interrupted one goes on.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from tiltyard import __version__
from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.tracks import PART_OF, PARTS, TRACK_OF, Part, Track
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.limits import Level, NoJailError
from tiltyard.isolation.host.probe import probe
from tiltyard.matches.opponents import Opponent, OpponentError, find_opponent
from tiltyard.reporting.html import render
from tiltyard.reporting.schema import Report, write_report
from tiltyard.rulesets.ruleset import Ruleset, check_ruleset
from tiltyard.runs.evaluate import Evaluation, Records, evaluate
from tiltyard.runs.job import Job
from tiltyard.runs.key import Key, restricted
from tiltyard.runs.store import EXCHANGES, FULL, PAGE, Store, StoreError, load_report, save
from tiltyard.submissions import Submission, SubmissionError, open_submission
from tiltyard.world.scenario import Scenario

ASKED: Final = "asked.json"
MAX_ASKED_BYTES: Final = 1 << 20
LOGS: Final = "logs"
_BY_CHANCE: Final = ("deadline", "died", "agent")


class Request(Struct, frozen=True):
    """What a user asked for, as far as it can be written down and asked for again."""

    submission: str
    ruleset: Ruleset
    tracks: tuple[Track, ...] = ()
    """All that the submission has, when none is named."""
    budget: str = "official"
    seed: int = PUBLIC_SEED
    opponent: str = ""
    unsafe: bool = False
    agent: AgentChoice = AgentChoice()


class Finished(Struct, frozen=True):
    directory: Path
    report: Report
    """Of an official run, the competitor's."""
    from_store: bool = False


def run(  # noqa: PLR0913 - all but two are for those who want something else
    request: Request,
    store: Store,
    *,
    scenario: Scenario | None = None,
    key: Key | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Finished:
    """Play what was asked for, or return it from the store if it was played before."""
    if not request.unsafe and probe().level is Level.C:
        raise NoJailError("this machine cannot confine a stranger's code")
    request = structs.replace(request, agent=request.agent.in_full())
    store.prepare()
    with ExitStack() as stack:
        scratch = stack.enter_context(store.scratch())
        job = make_job(request, scratch, scenario, key)
        stack.enter_context(store.locked(job.run_id))
        found = None if fresh else _finished(store, job, request)
        if found is not None:
            return found
        if "offense" in job.tracks:
            job.agent.check_key()
        job = _settle(job, store, fresh=fresh)
        directory = store.directory(job.run_id)
        (directory / ASKED).write_bytes(msgspec.json.encode(request))
        diary = Diary(directory / "run.log", progress or NO_PROGRESS)
        # What an unconfined guest wrote down is not what a confined one goes on from.
        logs = directory / (f"unsafe-{LOGS}" if request.unsafe else LOGS)
        logs.mkdir(exist_ok=True)
        records = Records(record_of(directory, official=key is not None))
        done = evaluate(job, logs=logs, records=records, unsafe=request.unsafe, progress=diary)
        diary.note(f"final score {done.report.final_score}, digest {done.report.digest}")
        shown = keep(done, directory)
        shutil.rmtree(logs)
        return Finished(directory, shown)


def record_of(directory: Path, *, official: bool) -> Path:
    """Return where a run's exchanges with a model are: those of a hidden world are hidden too."""
    return directory / FULL / EXCHANGES if official else directory / EXCHANGES


def read_request(directory: Path) -> Request:
    """Return what was asked for when a run was played."""
    path = directory / ASKED
    try:
        if path.is_symlink() or path.stat().st_size > MAX_ASKED_BYTES:
            raise StoreError(f"{path} is not what Tiltyard wrote")
        request = msgspec.json.decode(path.read_bytes(), type=Request)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise StoreError(
            f"{directory} has no {ASKED}: a report is played again from the directory of its run"
        ) from None
    check_ruleset(request.ruleset)
    request.agent.check()
    return request


def make_job(
    request: Request, scratch: Path, scenario: Scenario | None = None, key: Key | None = None
) -> Job:
    """Read the submission and the opponents, and say what there is to play."""
    submission = open_submission(Path(request.submission), scratch / "submission")
    tracks = _tracks(request, submission)
    opponents = _opponents(request, tracks, scratch)
    return Job(
        submission,
        tracks,
        request.ruleset,
        opponents["guardrail"],
        opponents["attack"],
        request.budget,
        request.seed,
        scenario,
        key,
        request.agent,
    )


def _opponents(request: Request, tracks: tuple[Track, ...], scratch: Path) -> dict[Part, Opponent]:
    """Put the opponent that was named on every side that it can take, and the rules' elsewhere."""
    play = request.ruleset.play
    found: dict[Part, Opponent] = {
        "guardrail": find_opponent("guardrail", play.offense_opponent, scratch),
        "attack": find_opponent("attack", play.defense_opponent, scratch),
    }
    problems: list[Exception] = []
    for track in tracks if request.opponent else ():
        other: Part = "guardrail" if track == "offense" else "attack"
        try:
            found[other] = find_opponent(other, request.opponent, scratch / f"opposing-{other}")
        except (OpponentError, SubmissionError) as error:
            problems.append(error)
    if problems and len(problems) == len(tracks):
        raise problems[0]
    return found


def _tracks(request: Request, submission: Submission) -> tuple[Track, ...]:
    for track in request.tracks:
        submission.module(PART_OF[track])
    return request.tracks or tuple(TRACK_OF[part] for part in PARTS if part in submission.modules)


def _finished(store: Store, job: Job, request: Request) -> Finished | None:
    """Return what was played before, unless it was played in another jail."""
    report = store.finished(job.run_id)
    # A guest that was late may come in time the next time; all else would only happen again.
    if report is None or any(failure.kind in _BY_CHANCE for failure in report.failures):
        return None
    level = Level.C if request.unsafe else probe().level
    if report.isolation.level != level.value:
        return None
    return Finished(store.directory(job.run_id), report, from_store=True)


def _settle(job: Job, store: Store, *, fresh: bool) -> Job:
    """Move what was read from the scratch directory to the run's own."""
    root = store.adopt(job.run_id, job.submission.root, fresh=fresh)
    opponents = {}
    for name in ("guardrail_opponent", "attack_opponent"):
        opponent: Opponent = getattr(job, name)
        if opponent.submission is not None:
            kept = root.parent / opponent.submission.root.name
            shutil.rmtree(kept, ignore_errors=True)
            opponent.submission.root.rename(kept)
            moved = structs.replace(opponent.submission, root=kept)
            opponents[name] = structs.replace(opponent, submission=moved)
    return structs.replace(job, submission=structs.replace(job.submission, root=root), **opponents)


def keep(done: Evaluation, directory: Path) -> Report:
    """Write a report, its page and its traces. Of an official run, a competitor's is in front."""
    report = done.report
    files = {f"traces/{trace.name}.json": trace.data for trace in done.traces}
    if report.setting.key:
        files = {f"{FULL}/report.json": write_report(report), f"{FULL}/{PAGE}": _page(report)}
        report = restricted(report)
    save(directory, {**files, PAGE: _page(report)}, report)
    return report


def _page(report: Report) -> bytes:
    return render(report).encode()


class Diary:
    """Writes down how a run went, and passes it on."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._path = path
        self._watcher = progress
        self.note(f"tiltyard {__version__}")

    def note(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def begin(self, what: str, total: int) -> None:
        self.note(f"{what}: {total} steps")
        self._watcher.begin(what, total)

    def step(self, done: int, note: str) -> None:
        self._watcher.step(done, note)


class Verified(Struct, frozen=True):
    """What a report says, and what came of playing it again."""

    expected: str
    found: str
    different: tuple[str, ...]
    """Figures of the report that are not those of its results, whatever its digest says."""
    failures: tuple[str, ...] = ()
    """Why a match could not be played again, if so."""

    @property
    def same(self) -> bool:
        return self.expected == self.found and not self.different


def verify(  # noqa: PLR0913 - all but two are for those who want something else
    path: Path,
    store: Store,
    *,
    scenario: Scenario | None = None,
    key: Key | None = None,
    unsafe: bool = False,
    progress: Progress | None = None,
) -> Verified:
    """Play the run of a report again from its directory, and compare.

    The directory may be a stranger's: whether there is a jail is for whoever verifies to say.
    """
    if not unsafe and probe().level is Level.C:
        raise NoJailError("this machine cannot confine a stranger's code")
    report = load_report(path)
    directory = path.parent
    request = read_request(directory)
    if any(failure.kind == "agent" for failure in report.failures):
        raise StoreError(
            "the match with the model was broken off, so there is nothing to compare; the same "
            "`tiltyard evaluate` goes on with it"
        )
    if report.setting.key and (key is None or key.fingerprint != report.setting.key):
        raise StoreError("this is an official run: verify it with the organizer's --key")
    store.prepare()
    with store.scratch() as scratch:
        opponent = next((str(one) for one in directory.glob("opposing-*")), request.opponent)
        again = structs.replace(
            request, submission=str(directory / "submission"), opponent=opponent
        )
        job = _as_named(make_job(again, scratch, scenario, key), report)
        if job.submission.digest != report.submission.digest:
            raise StoreError(f"{directory / 'submission'} is not the submission of this report")
        # A model cannot be asked the same again: it is played from the record alone.
        records = Records(record_of(directory, official=key is not None), closed=True)
        done = evaluate(job, records=records, unsafe=unsafe, progress=progress).report
    played = restricted(done) if report.restricted else done
    told, found = (_figures(one, report, played) for one in (report, played))
    different = sorted(name for name in {*told, *found} if told.get(name) != found.get(name))
    broken = tuple(failure.message for failure in done.failures)
    return Verified(report.digest, done.digest, tuple(different), broken)


def _as_named(job: Job, report: Report) -> Job:
    """Return a job under the names that its report has: in a run's directory all are called alike.

    A rung's name says which one it is, so that stays.
    """
    setting = report.setting
    opponents: dict[str, Opponent] = {}
    for field, name in (
        ("guardrail_opponent", setting.offense_opponent),
        ("attack_opponent", setting.defense_opponent),
    ):
        opponent: Opponent = getattr(job, field)
        if opponent.submission is not None:
            opponent = structs.replace(opponent, name=name)
        opponents[field] = opponent
    submission = structs.replace(job.submission, name=report.submission.name)
    return structs.replace(job, submission=submission, **opponents)


_NOT_FIGURES: Final = ("isolation", "seconds", "notes", "restricted", "digest")
"""Of a report: where and how fast it was played, and what is compared by itself."""


def _figures(report: Report, before: Report, after: Report) -> dict[str, Any]:
    """Return everything that a report says, by name, but the circumstances of its making."""
    left_out = {*_NOT_FIGURES}
    if before.isolation.level != after.isolation.level:
        left_out |= {"comparable", "not_comparable_because"}
    if before.setting.packages != after.setting.packages:
        # Other packages are here than there. That may be why something differs, and is no forgery.
        left_out |= {"run_id", "setting.packages"}
    figures = structs.asdict(report)
    for name in ("offense", "defense", "setting"):
        part = figures.pop(name)
        if part is not None:
            figures |= {f"{name}.{field}": value for field, value in structs.asdict(part).items()}
    return {name: value for name, value in figures.items() if name not in left_out}
