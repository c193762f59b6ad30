"""One core for a judge and its guests: what two houses at once, and forks, do to it."""

import os
from collections.abc import Callable

import pytest

from tiltyard.isolation.host.cores import SharedCore

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="there is but one core, and nothing to choose"
)


def affinity_of_a_copy(work: Callable[[], object]) -> set[int]:
    """Return where a forked copy of this process may run once it has done some work."""
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
def test_whoever_goes_last_frees_the_process(first_to_go: int) -> None:
    before = os.sched_getaffinity(0)
    houses = [SharedCore(), SharedCore()]
    for house in houses:
        house.join(os.getpid())
    (core,) = os.sched_getaffinity(0)
    houses.pop(first_to_go).give_up()
    assert os.sched_getaffinity(0) == {core}
    houses.pop().give_up()
    assert os.sched_getaffinity(0) == before


def test_what_is_started_apart_may_run_anywhere() -> None:
    before, house = os.sched_getaffinity(0), SharedCore()
    house.join(os.getpid())
    with house.apart(), SharedCore().apart():
        assert os.sched_getaffinity(0) == before
    assert len(os.sched_getaffinity(0)) == 1
    house.give_up()


def test_a_copy_made_by_fork_does_not_stay_on_the_originals_core() -> None:
    before = os.sched_getaffinity(0)
    used, other = SharedCore(), SharedCore()
    for house in (used, other):
        house.join(os.getpid())
    assert affinity_of_a_copy(used.give_up) == before
    assert len(os.sched_getaffinity(0)) == 1
    for house in (used, other):
        house.give_up()
    assert os.sched_getaffinity(0) == before
