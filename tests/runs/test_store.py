"""The store: where it writes, how it finds reports, and its lock."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from small_runs import request, submission
from tiltyard.runs.evaluate import Finished, evaluate
from tiltyard.runs.store import REPORT, Store, StoreError, find_report


def test_a_store_that_cannot_be_written_is_refused_before_a_match(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(StoreError, match="Choose another directory"):
        evaluate(request(submission(tmp_path / "mine")), Store(in_the_way))


def test_a_report_is_found_by_path_directory_or_part_of_its_id(
    played_run: tuple[Finished, Store, Path],
) -> None:
    finished, store, _ = played_run
    expected = finished.directory / REPORT
    for wanted in (expected, finished.directory, finished.report.run_id, expected.parent.name[:8]):
        assert find_report(str(wanted), store).samefile(expected)
    with pytest.raises(StoreError, match="tiltyard history"):
        find_report("nothing", store)


def test_the_same_run_is_not_played_twice_at_once(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", attack="")
    store.prepare()
    run_id = evaluate(request(mine), store).report.run_id
    with store.locked(run_id), pytest.raises(StoreError, match="another process"):
        evaluate(request(mine), store, fresh=True)


def test_nothing_is_written_through_a_link(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", guardrail="")
    finished = evaluate(request(mine), store)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "submission").mkdir(parents=True)
    (elsewhere / "submission" / "precious").write_text("")
    shutil.rmtree(finished.directory)
    finished.directory.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link"):
        evaluate(request(mine), store, fresh=True)
    assert (elsewhere / "submission" / "precious").exists()


_HOLDS: Final = """
import sys
from pathlib import Path
from tiltyard.runs.store import Store
store = Store(Path(sys.argv[1]))
store.prepare()
with store.scratch() as scratch:
    (scratch / "file").write_text("")
    print(scratch, flush=True)
    sys.stdin.read()
"""
_WORKS: Final = """
import sys
from pathlib import Path
from tiltyard.runs.store import Store
store = Store(Path(sys.argv[1]))
for _ in range(200):
    store.prepare()
    with store.scratch() as scratch:
        (scratch / "submission").mkdir()
        (scratch / "submission" / "file").write_text("")
        store.prepare()
        assert (scratch / "submission" / "file").exists()
"""


def test_a_directory_of_a_killed_process_is_removed(store: Store) -> None:
    with holder(store) as killed, holder(store) as working:
        abandoned, used = first_line(killed), first_line(working)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (abandoned / "file").exists()
        store.prepare()
        assert not abandoned.exists()
        assert (used / "file").exists()
        working.communicate("")
    assert not [*store.runs.iterdir()]


def holder(store: Store) -> subprocess.Popen[str]:
    """Start a process that has a temporary directory."""
    return subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(store.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_processes_at_the_same_time_keep_their_directories(store: Store) -> None:
    line = [sys.executable, "-c", _WORKS, str(store.root)]
    processes = [subprocess.Popen(line) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert not [*store.runs.iterdir()]


def test_a_link_is_not_followed_when_directories_are_removed(store: Store, tmp_path: Path) -> None:
    precious = tmp_path / "elsewhere" / "precious"
    precious.parent.mkdir()
    precious.write_text("")
    store.prepare()
    (store.runs / ".new-link").symlink_to(precious.parent)
    store.prepare()
    assert precious.exists()
