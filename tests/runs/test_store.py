"""The store: where it writes, how it finds reports, and its lock."""

import shutil
from pathlib import Path

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
