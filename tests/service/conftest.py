"""Databases for the tests of the server. Each module has fresh ones."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from small_servers import Cluster, prepare, use_database
from tiltyard.service.environment import sqlite_url

_NUMBERS = count()
"""A worker that takes over tests of a module may need a second database for it."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an SQLite file with all tables and no rows."""
    root = tmp_path_factory.mktemp("databases")
    prepare(root)
    path = root / "empty.sqlite3"
    use_database(sqlite_url(path))
    _migrate()
    return path


@pytest.fixture(scope="session")
def template(cluster: Cluster, empty: Path) -> str:
    """Return the name of a PostgreSQL database with all tables and no rows."""
    assert empty.exists()
    cluster.execute("CREATE DATABASE template_of_tests")
    use_database(cluster.url("template_of_tests"))
    _migrate()
    return "template_of_tests"


def _migrate() -> None:
    from django.db import connections  # noqa: PLC0415 - after Django is ready

    from tiltyard.service.prepare import migrate  # noqa: PLC0415

    migrate()
    connections.close_all()


@pytest.fixture(scope="module")
def sqlite(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("server") / "tiltyard.sqlite3"
    shutil.copy(empty, path)
    use_database(sqlite_url(path))
    yield sqlite_url(path)
    _close()


@pytest.fixture(scope="module")
def postgresql(cluster: Cluster, template: str) -> Iterator[str]:
    name = f"tests_{next(_NUMBERS)}"
    cluster.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    use_database(cluster.url(name))
    yield cluster.url(name)
    _close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Return the address of a database, once of each kind."""
    url: str = request.getfixturevalue(request.param)
    return url


def _close() -> None:
    from django.db import connections  # noqa: PLC0415

    connections.close_all()
