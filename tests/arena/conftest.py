"""An arena with a third of the public tasks: enough for statistics, and quick to play."""

from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from tiltyard.arena.building import Arena, build
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.schema import Pack
from tiltyard.packs.sealed import read_sealed

TASKS: Final = 16


def some_tasks() -> dict[str, Pack]:
    """Return the shipped packs, with every third task."""
    return {
        name: structs.replace(
            pack, tasks={task: pack.tasks[task] for task in sorted(pack.tasks)[::3][:TASKS]}
        )
        for name, pack in shipped_packs().items()
    }


@pytest.fixture(scope="session")
def arena() -> Arena:
    return build(some_tasks(), "tests")


@pytest.fixture(scope="session")
def other_arena() -> Arena:
    """Return the same tasks in other worlds."""
    return build(some_tasks(), "other tests")


@pytest.fixture(scope="session")
def sealed_arena() -> Arena:
    """Return the sealed tasks of one key."""
    return build(read_sealed(Path(__file__).parent / "sealed").packs, "tests")
