"""A store, and one run of both tracks for all tests that only look at it."""

from pathlib import Path

import pytest

from small_runs import request, submission
from tiltyard.runs.evaluate import Finished, evaluate
from tiltyard.runs.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def played_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Store, Path]:
    root = tmp_path_factory.mktemp("played")
    path, kept = submission(root / "mine"), Store(root / "store")
    return evaluate(request(path), kept), kept, path
