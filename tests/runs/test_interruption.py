"""Interrupted runs continue from their logs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from small_runs import ATTACK, request, small_rules, submission
from tiltyard.foundation.log import Log
from tiltyard.isolation.host.jailed_attack import Exchange
from tiltyard.isolation.wire.frames import EnvCall, EnvReply
from tiltyard.reporting.schema import Report
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import Key
from tiltyard.runs.store import REPORT, Store

KEY: Final = "0123456789abcdef" * 4

_PLAYING: Final = """
import signal
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from small_runs import request, small_rules
from tiltyard.reporting.schema import Report
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import Key
from tiltyard.runs.store import Store

class Stopwatch:
    def begin(self, what, total):
        print(what, flush=True)
    def step(self, done, note):
        print(done, flush=True)

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
try:
    evaluate(request(Path(sys.argv[1]), rules=small_rules(3_000)), Store(Path(sys.argv[2])),
        worlds=Worlds(key=Key(sys.argv[4])) if sys.argv[4:] else None, progress=Stopwatch(),
        at_once=2)
except KeyboardInterrupt:
    sys.exit(130)
"""


STOPS: Final = (signal.SIGINT, signal.SIGTERM)
SLOW: Final = ATTACK.replace("for folder in folders", "for folder in 3 * folders")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """Return the report of the same run without an interruption, and its batteries."""
    place = tmp_path_factory.mktemp("uninterrupted")
    mine, store = submission(place / "mine", attack=SLOW), Store(place / "store")
    return evaluate(request(mine, rules=small_rules(3_000)), store).report, store.batteries


@pytest.mark.parametrize(
    ("until", "how"),
    [("offense", signal.SIGKILL), ("defense", signal.SIGINT), ("defense", signal.SIGKILL)],
)
def test_an_interrupted_run_continues_to_the_same_result(
    until: str,
    how: signal.Signals,
    tmp_path: Path,
    store: Store,
    uninterrupted: tuple[Report, Path],
) -> None:
    expected, batteries = uninterrupted
    shutil.copytree(batteries, store.batteries)
    mine = submission(tmp_path / "mine", attack=SLOW)
    playing = subprocess.Popen(
        [sys.executable, "-c", _PLAYING, mine, store.root, Path(__file__).parent.parent],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert playing.stdout is not None
    steps = 0
    reached = False
    for line in playing.stdout:
        reached = reached or line.strip() == until
        steps += reached and line.strip().isdigit()
        if reached and (steps > 3 or until == "offense"):
            break
    playing.send_signal(how)
    playing.stdout.close()
    playing.wait()
    assert not [*store.runs.glob(f"*/{REPORT}")]
    assert len([*store.runs.glob(".new-*")]) == (how is signal.SIGKILL)
    wanted = request(mine, rules=small_rules(3_000))
    resumed = evaluate(wanted, store)
    assert resumed.report.digest == expected.digest
    reports = resumed.report, expected
    timeless = [structs.replace(one, seconds={}, started="") for one in reports]
    assert timeless[0] == timeless[1]
    assert not [*store.runs.glob("*/logs")]
    assert not [*store.runs.glob(".*")]
    _wait_until_unused(mine.parent)


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """Return the report of an official run without an interruption, and its batteries."""
    place = tmp_path_factory.mktemp("official")
    mine, store = submission(place / "mine", attack=SLOW), Store(place / "store")
    worlds = Worlds(key=Key(KEY))
    done = evaluate(request(mine, rules=small_rules(3_000)), store, worlds=worlds)
    return done.report, store.batteries


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.soak) for each in STOPS)]
)
def test_an_official_run_in_several_processes_ends_and_continues(
    how: signal.Signals, tmp_path: Path, store: Store, official: tuple[Report, Path]
) -> None:
    wanted, batteries = official
    shutil.copytree(batteries, store.batteries)
    mine = submission(tmp_path / "mine", attack=SLOW)
    playing = subprocess.Popen(
        [sys.executable, "-c", _PLAYING, mine, store.root, Path(__file__).parent.parent, KEY],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert playing.stdout is not None
    for _ in zip(range(20), playing.stdout, strict=False):
        pass
    playing.send_signal(how)
    playing.stdout.close()
    playing.wait()
    _wait_until_unused(mine.parent)
    assert not [*store.runs.glob(f"*/{REPORT}")]
    assert [*store.runs.glob("*/logs/defense-*.log")]
    same = request(mine, rules=small_rules(3_000))
    resumed = evaluate(same, store, worlds=Worlds(key=Key(KEY)), at_once=2).report
    assert resumed.digest == wanted.digest
    assert structs.replace(resumed, started="") == structs.replace(wanted, started="")
    assert not [*store.runs.glob("*/logs")]


def _wait_until_unused(root: Path) -> None:
    """Wait until no process names `root` in its command line."""
    for _ in range(600):
        if not _processes_using(root):
            return
        time.sleep(0.1)
    assert not _processes_using(root)


def _processes_using(root: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(root) in line:
                found.append(line.decode(errors="replace"))
    return found


def test_an_attack_that_asks_differently_cannot_be_resumed(tmp_path: Path, store: Store) -> None:
    """The log answers the attack's questions again, so the attack must ask the same ones."""
    mine = submission(tmp_path / "mine", guardrail="")
    first = evaluate(request(mine), store)
    report = first.directory / REPORT
    report.unlink()
    logs = first.directory / "logs"
    logs.mkdir()
    with Log[Any](logs / "offense-1.log", Exchange) as log:
        log.add(Exchange(EnvCall("interact", "something else"), EnvReply()))
    report_again = evaluate(request(mine), store).report
    assert [failure.kind for failure in report_again.failures] == ["protocol"]
    assert "another call than before" in report_again.failures[0].message
