"""Tasks in several processes."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tiltyard.foundation.processes import Task, run_tasks
from tiltyard.foundation.progress import NO_PROGRESS, Progress


def task(run: Callable[[], Any], group: str = "") -> Task:
    return Task("a task", lambda _: run(), lambda reason: f"lost: {reason}", group)


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_results_come_in_the_order_of_the_tasks(at_once: int) -> None:
    def late(number: int) -> tuple[int, int]:
        time.sleep(0.05 * (3 - number))
        return number, os.getpid()

    tasks = [task(partial(late, number)) for number in range(3)]
    results = run_tasks(tasks, at_once, NO_PROGRESS)
    assert [number for number, _ in results] == [0, 1, 2]
    assert len({process for _, process in results} | {os.getpid()}) == 4


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_failure_spares_earlier_tasks_and_other_groups(at_once: int) -> None:
    def slowly() -> str:
        time.sleep(0.3)
        return "fine"

    def for_ever() -> str:
        time.sleep(600)
        return "late"

    tasks = [
        task(slowly, "one"),
        task(lambda: "failed", "one"),
        task(for_ever, "one"),
        task(lambda: "fine", "two"),
    ]
    results = run_tasks(tasks, at_once, NO_PROGRESS, lambda result: result == "failed")
    assert results == ["fine", "failed", None, "fine"]


def test_an_exception_is_raised_in_the_parent() -> None:
    with pytest.raises(ZeroDivisionError):
        run_tasks([task(lambda: 1 // 0), task(lambda: time.sleep(600))], 2, NO_PROGRESS)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_process_that_dies_costs_only_its_own_task(at_once: int) -> None:
    tasks = [task(lambda: os.kill(os.getpid(), signal.SIGKILL)), task(lambda: "fine")]
    lost, fine = run_tasks(tasks, at_once, NO_PROGRESS)
    assert lost.startswith("lost: the judge's process for a task was ended by SIGKILL")
    assert fine == "fine"


def test_an_exception_that_cannot_be_sent_costs_only_its_own_task() -> None:
    class LocalError(Exception):
        """A local class cannot be pickled."""

    class TwoPartsError(Exception):
        def __init__(self, one: str, two: str) -> None:
            super().__init__(one + two)

    def fail(error: Exception) -> None:
        raise error

    tasks = [
        task(partial(fail, LocalError("broken"))),
        task(partial(fail, TwoPartsError("bro", "ken"))),
        task(lambda: "fine"),
    ]
    *lost, fine = run_tasks(tasks, 2, NO_PROGRESS)
    assert [reason.rpartition(": ")[2] for reason in lost] == ["broken", "broken"]
    assert fine == "fine"


def test_progress_says_what_runs_and_how_far_it_is() -> None:
    said: list[tuple[int, str]] = []

    class Heard:
        def begin(self, what: str, total: int) -> None:
            said.append((total, what))

        def step(self, done: int, note: str) -> None:
            said.append((done, note))

    def work(progress: Progress) -> None:
        progress.begin("digging", 200)
        progress.step(50, "")

    run_tasks([Task("a task", work, str)], 1, Heard())
    assert said == [(100, "1 parts"), (0, "digging 0%"), (12, "digging 25%"), (100, "")]


def test_a_silent_process_ends_with_its_parent(tmp_path: Path) -> None:
    """The parent is killed while its task computes and reports nothing."""
    note = tmp_path / "note"

    def compute() -> None:
        note.write_text(str(os.getpid()))
        while True:
            pass

    parent = multiprocessing.get_context("fork").Process(
        target=run_tasks, args=([task(compute)], 1, NO_PROGRESS)
    )
    parent.start()
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    parent.kill()
    parent.join()
    for _ in range(600):
        if not _runs(int(note.read_text())):
            return
        time.sleep(0.1)
    pytest.fail("the task still runs")


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"
