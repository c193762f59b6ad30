"""Run the web process, and a worker beside it."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn

from tiltyard.service.web.front import Front

_GRACE_SECONDS: Final = 25.0
_PAUSE_SECONDS: Final = 2.0


def serve(host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C. Open event streams do not hold up the end."""
    uvicorn.run(
        Front(),
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=3,
        timeout_keep_alive=20,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1",
    )


@contextmanager
def worker_beside(command: Sequence[str]) -> Iterator[None]:
    """Keep a worker process running, and start it again when it ends by itself."""
    over = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def keep() -> None:
        while not over.is_set():
            process = subprocess.Popen([sys.executable, "-m", "tiltyard", *command])  # noqa: S603
            running[:] = [process]
            code = process.wait()
            if code == NO_SANDBOX or over.wait(_PAUSE_SECONDS):
                return

    keeper = threading.Thread(target=keep, name="worker keeper", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        for process in running:
            process.terminate()
        keeper.join(_GRACE_SECONDS)
        for process in running:
            if process.poll() is None:
                process.kill()


NO_SANDBOX: Final = 3
"""The exit code of a worker on a machine without level A. To start it again would not help."""
