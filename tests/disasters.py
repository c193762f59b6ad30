"""A server with workers and a web process, and everything that can happen to them."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from small_servers import Cluster

FREEZE_SECONDS = 20.0
FULL_SECONDS = 8.0
DISK_BYTES = 24 << 20
_UNSHARE = shutil.which("unshare") or "/usr/bin/unshare"
WRONG_CLOCK = '''
"""Loaded by every Python that starts with this directory in its path: it is an hour ahead."""

import time

_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + 3_600
time.time_ns = lambda: _time_ns() + 3_600 * 1_000_000_000
'''


class Stage:
    """Two workers of one name and one directory, one on a small disk with a wrong clock, a web."""

    def __init__(self, url: str, cluster: Cluster, root: Path) -> None:
        self._url, self._cluster, self._root = url, cluster, root
        self.log = (root / "log").open("ab")
        self._clock = root / "wrong-clock"
        self._clock.mkdir()
        (self._clock / "sitecustomize.py").write_text(WRONG_CLOCK, encoding="utf-8")
        self._disk = root / "small-disk"
        self._disk.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.workers = [self._start(number) for number in range(3)]
        self.web = self._start_web()

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tiltyard", "worker", "--database", self._url]
        command += ["--name", "same", "--directory"]
        if number < 2:
            return subprocess.Popen([*command, str(self._root / "both")], stderr=self.log)
        # A mount that only this worker sees, and that goes away with it.
        mount = f'mount -t tmpfs -o size={DISK_BYTES} none {self._disk} && exec "$@"'
        options = ["--mount"] if os.getuid() == 0 else ["--mount", "--map-root-user"]
        known = os.environ.get("PYTHONPATH", "")
        return subprocess.Popen(
            [_UNSHARE, *options, "/bin/sh", "-c", mount, "sh", *command, str(self._disk)],
            stderr=self.log,
            env={**os.environ, "PYTHONPATH": f"{self._clock}{os.pathsep}{known}".rstrip(":")},
        )

    def _start_web(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tiltyard", "serve", "--no-worker", "--port"]
        place = ["--database", self._url, "--directory", str(self._root / "web")]
        return subprocess.Popen(
            [*command, str(self.port), *place], stdout=subprocess.DEVNULL, stderr=self.log
        )

    def kill_worker(self) -> None:
        number = random.randrange(3)
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._start(number)

    def stop_worker(self) -> None:
        number = random.randrange(3)
        self.workers[number].terminate()
        self.workers[number].wait(120)
        self.workers[number] = self._start(number)

    def freeze_worker(self) -> None:
        worker = self.workers[random.randrange(3)]
        worker.send_signal(signal.SIGSTOP)
        time.sleep(FREEZE_SECONDS)
        worker.send_signal(signal.SIGCONT)

    def kill_web(self) -> None:
        self.web.kill()
        self.web.wait()
        self.web = self._start_web()

    def restart_database(self) -> None:
        self._cluster.stop("immediate")
        self._cluster.start()

    def cut_connections(self) -> None:
        """End every connection of every process to the database."""
        self._cluster.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )

    def fill_disk(self) -> None:
        """Fill the small disk of the third worker for a while."""
        place = Path(f"/proc/{self.workers[2].pid}/root{self._disk}")
        with suppress(OSError):  # The worker may have been killed meanwhile.
            if shutil.disk_usage(place).total > 2 * DISK_BYTES:
                return  # It has no disk of its own yet.
            ballast = place / "ballast"
            with suppress(OSError), ballast.open("wb") as file:
                while True:
                    file.write(bytes(1 << 20))
            time.sleep(FULL_SECONDS)
            ballast.unlink()

    @property
    def disasters(self) -> list[Callable[[], None]]:
        return [
            self.kill_worker,
            self.kill_web,
            self.cut_connections,
            self.fill_disk,
            self.freeze_worker,
            self.restart_database,
            self.stop_worker,
        ]

    def end(self) -> None:
        processes = [*self.workers, self.web]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes:
            process.wait(120)
        self.log.close()


class Storm:
    """Lets disasters happen at random moments, each of them once before any comes again."""

    def __init__(self, stage: Stage, pause_seconds: tuple[float, float]) -> None:
        self._stage, self._pause = stage, pause_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storm")
        self.happened: list[str] = []
        self.failed: list[BaseException] = []

    def _run(self) -> None:
        while not self._over.is_set():
            for disaster in random.sample(self._stage.disasters, len(self._stage.disasters)):
                if self._over.wait(random.uniform(*self._pause)):
                    return
                try:
                    disaster()
                except Exception as error:  # noqa: BLE001 - the test shows it
                    self.failed.append(error)
                    return
                self.happened.append(disaster.__name__)

    def start(self) -> None:
        self._thread.start()

    def wait_for_all(self, seconds: float) -> None:
        """Wait until each disaster has happened once."""
        limit = time.monotonic() + seconds
        while len({*self.happened}) < len(self._stage.disasters) and not self.failed:
            assert time.monotonic() < limit, self.happened
            time.sleep(0.2)

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        assert not self.failed, self.failed
