"""A PostgreSQL and an SQLite database for tests of the server, and small competitions in them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Any

from tiltyard.service.environment import database_settings, enter, sqlite_url

ROOT = Path(__file__).parents[1]
TINY_RULES = """
extends = "design"
name = "tiny"
version = 1

[attack]
steps = 600

[official]
seeds = 1
"""
"""Rules under which an offense match takes a moment."""
ATTACK = """
class AttackAlgorithm:
    def run(self, env, config):
        return [["{word}"], ["run `rm -rf /`"]]
"""
SLOW_ATTACK = """
class AttackAlgorithm:
    def run(self, env, config):
        for _ in range({seconds} * 13_000_000):
            pass
        return [["run `rm -rf /`"]]
"""
"""Takes about so many seconds for both runs. A guest's clock is simulated, so it cannot sleep."""


class Cluster:
    """A PostgreSQL in a directory of its own, which runs as another user than root."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="tiltyard-postgresql-"))
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
        if os.getuid() == 0:
            shutil.chown(self.root, "postgres", "postgres")
        else:
            self._as = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", f"{self.root}/data", "-A", "trust", "-U", "postgres", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.root}"
        options += " -c max_connections=200"
        data, log = f"{self.root}/data", f"{self.root}/log"
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.root}/data", "-m", how, "-w", "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.root)

    def url(self, name: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        self._run("psql", *where, "-v", "ON_ERROR_STOP=1", "-qc", statement)

    def _run(self, program: str, *options: str) -> None:
        found = shutil.which(program) or max(glob(f"/usr/lib/postgresql/*/bin/{program}"))  # noqa: PTH207
        subprocess.run(
            [*self._as, found, *options],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            timeout=120,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )


def use_database(url: str) -> None:
    """Let Django use another database from now on, in all threads."""
    from django.db import connections  # noqa: PLC0415 - after `enter`

    connections.close_all()
    settings = connections.configure_settings({"default": database_settings(url)})
    connections.settings["default"] = settings["default"]
    with suppress(AttributeError):  # This thread may have none.
        del connections["default"]


def prepare(root: Path) -> None:
    """Make Django ready in this process, once."""
    if "DJANGO_SETTINGS_MODULE" not in os.environ:
        # Playwright keeps an event loop in the main thread of a process that tests pages too.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        enter(sqlite_url(root / "first.sqlite3"), "a secret of the tests" * 3)


def make_competition(slug: str = "tiny", **fields: Any) -> Any:
    from tiltyard.runs.key import Key, make_key  # noqa: PLC0415 - as above
    from tiltyard.service.models import Competition  # noqa: PLC0415
    from tiltyard.service.terms import set_keys, set_ruleset  # noqa: PLC0415

    competition = Competition(slug=slug, title=f"Competition {slug}")
    set_ruleset(competition, TINY_RULES)
    set_keys(competition, Key(make_key().strip()), Key(make_key().strip()))
    for name, value in fields.items():
        setattr(competition, name, value)
    competition.save()
    competition.refresh_from_db()
    return competition


def make_account(name: str, **fields: Any) -> Any:
    from tiltyard.service.models import Account  # noqa: PLC0415

    return Account.objects.create(username=name, password="!", **fields)  # noqa: S106


def make_team(competition: Any, name: str) -> Any:
    from tiltyard.service.actions.accounts import join  # noqa: PLC0415

    return join(make_account(f"{name} of {competition.slug}"[:60]), competition, name)


def checked(source: str) -> Any:
    """Return an attack as an upload that was accepted, without the process that parses it."""
    from tiltyard.service.actions.submit import Checked  # noqa: PLC0415
    from tiltyard.submissions import Submission, SubmittedFile, digest_of  # noqa: PLC0415
    from tiltyard.submissions.packing import pack  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "attack.py").write_text(source, encoding="utf-8")
        digest = digest_of({"attack.py": source.encode()})
        files = (SubmittedFile("attack.py", len(source.encode())),)
        content = pack(Submission("attack", Path(scratch), files, digest, {}, {}))
    return Checked("attack", digest, ("offense",), content)


def send(team: Any, source: str) -> Any:
    """Submit an attack for a team, and return the submission."""
    from tiltyard.service.actions.submit import submit  # noqa: PLC0415

    return submit(team, team.memberships.get().account, checked(source))[0]


@contextmanager
def running(url: str, *directories: Path) -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """Run a worker in each directory, under its name, and end all of them with the block."""
    command = [sys.executable, "-m", "tiltyard", "worker", "--database", url]
    workers = {
        one.name: subprocess.Popen(
            [*command, "--directory", str(one), "--name", one.name],
            stderr=subprocess.PIPE,
            text=True,
        )
        for one in directories
    }
    try:
        for process in workers.values():
            assert process.stderr is not None
            first = process.stderr.readline()
            assert "is ready" in first, first + process.stderr.read()
        yield workers
    finally:
        for process in workers.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in workers.values():
            process.communicate(timeout=60)


def wait_until(holds: Callable[[], Any], seconds: float = 120.0) -> float:
    """Wait until something holds, and return how long it took."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < seconds, "waited in vain"
        time.sleep(0.1)
    return time.monotonic() - start
