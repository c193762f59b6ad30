"""One core for a judge and its guests, with two pools at once and with forks."""

import os
from collections.abc import Callable

import pytest

from tiltyard.isolation.host.cores import SharedCore

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this machine has one core"
)


def affinity_of_a_copy(work: Callable[[], object]) -> set[int]:
    """Return the cores on which a forked copy of this process can run after `work`."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        work()
        os.write(write, repr(sorted(os.sched_getaffinity(0))).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as told:
        return set(map(int, told.read().strip("[]").split(", ")))


@pytest.mark.parametrize("first_to_go", [0, 1])
def test_last_shared_core_to_end_frees_the_process(first_to_go: int) -> None:
    before = os.sched_getaffinity(0)
    cores = [SharedCore(), SharedCore()]
    for core_user in cores:
        core_user.join(os.getpid())
    (core,) = os.sched_getaffinity(0)
    cores.pop(first_to_go).give_up()
    assert os.sched_getaffinity(0) == {core}
    cores.pop().give_up()
    assert os.sched_getaffinity(0) == before


def test_processes_started_apart_can_run_on_any_core() -> None:
    before, core_user = os.sched_getaffinity(0), SharedCore()
    core_user.join(os.getpid())
    with core_user.apart(), SharedCore().apart():
        assert os.sched_getaffinity(0) == before
    assert len(os.sched_getaffinity(0)) == 1
    core_user.give_up()


def test_forked_copy_leaves_the_core_of_the_original() -> None:
    before = os.sched_getaffinity(0)
    used, other = SharedCore(), SharedCore()
    for core_user in (used, other):
        core_user.join(os.getpid())
    assert affinity_of_a_copy(used.give_up) == before
    assert len(os.sched_getaffinity(0)) == 1
    for core_user in (used, other):
        core_user.give_up()
    assert os.sched_getaffinity(0) == before
