"""Run one Python file inside the jail and tell, in one line of JSON, what came of it.

The file defines `probe(given)`; what it is given comes over the pipe as one line of JSON. For
probing a machine and for the tests; no match uses it.
"""

import errno
import json
import os
from typing import Any, Final

from tiltyard.isolation.confinement.selfjail import in_force

_MOST: Final = 1 << 16


def prepare() -> None:
    """Do nothing: what a probe finds at its start is its own doing."""


def main(read_fd: int, write_fd: int, submission: str | None) -> None:
    """Run `probe` and print its result, or what it raised."""
    told: dict[str, Any] = {"layers": in_force()}
    if submission is not None:
        with open(read_fd, "rb", buffering=0, closefd=False) as pipe:
            given = json.loads(pipe.readline(_MOST))
        try:
            told["result"] = _run(submission, {**given, "read": read_fd, "write": write_fd})
        except BaseException as error:  # noqa: BLE001 - whatever a probe runs into is its answer
            number = getattr(error, "errno", None)
            told["raised"] = type(error).__name__
            told["errno"] = errno.errorcode.get(number) if isinstance(number, int) else None
            told["text"] = str(error)[:500]
    os.write(1, json.dumps(told).encode() + b"\n")


def _run(submission: str, given: dict[str, Any]) -> Any:
    path = f"{submission}/probe.py" if os.path.isdir(submission) else submission  # noqa: PTH112
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to start
        code = compile(file.read(), path, "exec")
    names: dict[str, Any] = {"__name__": "probe", "__file__": path}
    exec(code, names)  # noqa: S102 - that is what the jail is for
    return names["probe"](given)
