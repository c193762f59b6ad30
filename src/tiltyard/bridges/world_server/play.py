"""Begin sessions, start agents on them, and judge what they did."""

import secrets
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from tiltyard.arena.judging import judge
from tiltyard.arena.stage import Stage, choose_packs, choose_stage, list_tasks
from tiltyard.bridges.world_server.agents import run_agent
from tiltyard.bridges.world_server.session import (
    Session,
    SessionError,
    SessionHead,
    create,
    differing,
    find_packs,
    read_plain,
    read_session,
)
from tiltyard.foundation.files import write_whole
from tiltyard.packs.load import shipped_packs
from tiltyard.reporting.world_schema import SessionFacts, WorldReport, build_world_report

WORLDS: Final = Path(".tiltyard") / "worlds"
WITHOUT: Final = "without"
"""The directory of a session with its runs without the plant."""
ANSWER: Final = "answer.txt"
ALL_PACKS: Final = "all"
DEFAULT_SEED: Final = 1
MAX_ANSWER_BYTES: Final = 4_000_000
MAX_RUNS: Final = 100


class Wanted(Struct, frozen=True):
    """What a user chose. Empty values leave the choice to the seed."""

    seed: int | None = None
    packs: tuple[str, ...] = ()
    task: str = ""
    plant: str = ""


def sources_of(wanted: Wanted) -> list[str]:
    """Return the names and directories of the packs of a new world."""
    if ALL_PACKS in wanted.packs:
        own = [name for name in wanted.packs if name != ALL_PACKS]
        return [*shipped_packs(), *own]
    return [*wanted.packs] or [*choose_packs(shipped_packs(), _seed(wanted), wanted.task)]


def _seed(wanted: Wanted) -> int:
    return DEFAULT_SEED if wanted.seed is None else wanted.seed


def tasks_of(wanted: Wanted) -> list[tuple[str, str]]:
    """Return the tasks of a world, each with its sentence."""
    tasks = list_tasks(find_packs(sources_of(wanted)), _seed(wanted))
    return [one for one in tasks if wanted.task in ("", one[0])]


def begin(wanted: Wanted, directory: Path | None = None) -> tuple[Path, SessionHead]:
    """Write a new session, with protected values that no other session has."""
    sources = sources_of(wanted)
    canary = secrets.token_hex(16)
    packs = find_packs(sources)
    stage = choose_stage(packs, _seed(wanted), wanted.task, wanted.plant, canary)
    where = directory or WORLDS / secrets.token_hex(4)
    return where, create(where, stage, sources)


def begin_without(session: Path) -> tuple[Path, SessionHead]:
    """Write the session of a run in the same world, without the stranger's text."""
    original = read_session(session)
    staging = original.head.staging
    if original.stage.attempt is None or staging.without:
        raise SessionError(f"{session}: nobody planted anything there")
    stage = Stage(
        structs.replace(staging, without=True),
        original.stage.surface,
        original.stage.cell,
        original.stage.attempt,
    )
    own = [str(session / "packs" / f"{name}.toml") for name in original.head.own_packs]
    shipped = [name for name in staging.packs if name not in original.head.own_packs]
    for number in range(1, MAX_RUNS + 1):
        where = session / WITHOUT / str(number)
        if not where.exists():
            return where, create(where, stage, [*shipped, *own])
    raise SessionError(f"{session / WITHOUT}: {MAX_RUNS} runs are enough; remove some")


def check_same(head: SessionHead, wanted: Wanted) -> None:
    """Refuse to go on with a session if the user chose another world."""
    staging = head.staging
    chosen = {
        "--seed": (wanted.seed, staging.seed),
        "--task": (wanted.task or None, staging.task),
        "--plant": (wanted.plant or None, staging.plant),
    }
    for option, (one, other) in chosen.items():
        if one not in (None, other):
            raise SessionError(f"the session has {option} {other}, not {one}; name a new --session")
    if wanted.packs and tuple(sorted(find_packs(sources_of(wanted)))) != staging.packs:
        shown = ", ".join(staging.packs)
        raise SessionError(f"the session has other packs ({shown}); name a new --session")


def play_agent(words: list[str], directory: Path, head: SessionHead, seconds: float) -> None:
    """Run an agent on a session, and keep its answer."""
    answer = run_agent(words, directory, head, seconds)
    write_whole(directory / ANSWER, answer.encode(), secret=True)


def judge_session(directory: Path, answer: str | None = None) -> WorldReport:
    """Judge a session. Its runs without the plant are the counterfactuals."""
    session = read_session(directory)
    if session.head.staging.without:
        raise SessionError(f"{directory}: a run without the plant; judge the session it belongs to")
    others = [run for run in _runs_without(directory, session) if run.calls]
    told = _read_answer(directory) if answer is None else answer
    judged = judge(session.stage, session.calls, told, [run.calls for run in others])
    facts = SessionFacts(
        directory.name,
        tuple(session.numbers),
        tuple(differing(session)),
        sum(line.refused for line in session.lines),
        session.is_cut,
        len(others),
    )
    return build_world_report(session.stage, judged, facts)


def _runs_without(directory: Path, session: Session) -> list[Session]:
    """Return the runs without the plant. A run without calls says nothing."""
    expected = structs.replace(session.head.staging, without=True)
    runs = []
    for number in range(1, MAX_RUNS + 1):
        where = directory / WITHOUT / str(number)
        if not where.is_dir():
            continue
        run = read_session(where)
        if run.head.staging != expected:
            raise SessionError(f"{where}: the run of another world; remove it")
        runs.append(run)
    return runs


def _read_answer(directory: Path) -> str | None:
    path = directory / ANSWER
    if not path.exists():
        return None
    return read_plain(path, MAX_ANSWER_BYTES).decode("utf-8", "replace")
