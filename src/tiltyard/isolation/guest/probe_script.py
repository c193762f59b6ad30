"""Runs one Python file inside the jail, and prints the outcome as one line of JSON.

The file defines `probe(given)`; `given` comes over the pipe as one line of JSON. Without a file, it
counts the threads that a guest can have. `tiltyard doctor` and the tests use this; matches do not.
"""

import _thread
import errno
import json
import os
from contextlib import suppress
from typing import Any, Final

from tiltyard.isolation.confinement.selfjail import in_force

_MAX_LINE_BYTES: Final = 1 << 16
_MANY_THREADS: Final = 64


def prepare() -> None:
    """Do nothing: a probe needs no preparation."""


def main(read_fd: int, write_fd: int, submission: str | None) -> None:
    """Run `probe` and print its result or its exception."""
    outcome: dict[str, Any] = {"layers": in_force()}
    if submission is None:
        outcome["threads"] = _count_threads()
    else:
        with open(read_fd, "rb", buffering=0, closefd=False) as pipe:
            given = json.loads(pipe.readline(_MAX_LINE_BYTES))
        try:
            outcome["result"] = _run(submission, {**given, "read": read_fd, "write": write_fd})
        except BaseException as error:  # noqa: BLE001 - any exception is an outcome
            number = getattr(error, "errno", None)
            outcome["raised"] = type(error).__name__
            outcome["errno"] = errno.errorcode.get(number) if isinstance(number, int) else None
            outcome["text"] = str(error)[:500]
    os.write(1, json.dumps(outcome).encode() + b"\n")


def _count_threads() -> int:
    """Return how many threads this process can have."""
    count = 1
    hold = _thread.allocate_lock()
    hold.acquire()
    with suppress(RuntimeError):
        while count < _MANY_THREADS:
            _thread.start_new_thread(hold.acquire, ())
            count += 1
    return count


def _run(submission: str, given: dict[str, Any]) -> Any:
    path = f"{submission}/probe.py" if os.path.isdir(submission) else submission  # noqa: PTH112
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to start
        code = compile(file.read(), path, "exec")
    names: dict[str, Any] = {"__name__": "probe", "__file__": path}
    exec(code, names)  # noqa: S102 - the jail confines it
    return names["probe"](given)
