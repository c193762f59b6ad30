"""Play one judging: `tiltyard evaluate` in a process of its own.

A jail needs the main thread of a process, and a process can be killed. The exit code says whose
fault a missing score is: a report means that the match was played, and everything else is ours.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.isolation.host.failures import FailureKind
from tiltyard.reporting.schema import Report, ReportError
from tiltyard.runs.store import Store, full_report, load_report

_OURS: Final = (FailureKind.AGENT, FailureKind.MATCH)
"""Failures of a match that no submission causes."""
_LOOK_EVERY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 20.0
_MAX_LINES: Final = 20


class Brief(Struct, frozen=True):
    """What to play."""

    judging: int
    digest: str
    content: bytes
    ruleset: str
    """A ruleset in TOML."""
    budget: str
    key: str
    """The secret key; empty for the public seed."""


class Played(Struct, frozen=True):
    """The report that the competitor may see, and the organizer's, if that one is another."""

    shown: Report
    full: Report | None


class EvaluationError(Exception):
    """The server could not play a judging; the message says why."""


class StoppedError(Exception):
    """The evaluation was stopped, because its result is no longer wanted here."""


def play(brief: Brief, directory: Path, look: Callable[[str], bool]) -> Played:
    """Play a judging in a directory that belongs to this worker alone.

    Every second, `look` gets the current stage. If it returns False, the evaluation stops.
    """
    place = directory / f"judging-{brief.judging}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    store = Store(directory / "store")
    try:
        process = _start(brief, place, store)
        output = _wait(process, look)
        return _read(output, store)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _start(brief: Brief, place: Path, store: Store) -> "subprocess.Popen[str]":
    archive = place / f"{brief.digest[:12]}.zip"
    archive.write_bytes(brief.content)
    (place / "ruleset.toml").write_text(brief.ruleset, encoding="utf-8")
    options = ["--ruleset", str(place / "ruleset.toml"), "--budget", brief.budget]
    if brief.key:
        (place / "key").touch(0o600)
        (place / "key").write_text(f"{brief.key}\n", encoding="ascii")
        options += ["--key", str(place / "key")]
    leash = [sys.executable, "-m", "tiltyard.service.engine.leash", str(os.getpid())]
    command = ["evaluate", str(archive), *options, "--store", str(store.root), "--json"]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own command
        [*leash, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env=environment,
    )


_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "PYTHONUTF8", "VIRTUAL_ENV")
"""The variables that an evaluation gets. The address of the database is not among them."""


class _Output(Struct):
    code: int
    stdout: str
    lines: list[str]
    """The last lines on stderr: its progress, and what went wrong."""


def _wait(process: "subprocess.Popen[str]", look: Callable[[str], bool]) -> _Output:
    assert process.stdout is not None
    assert process.stderr is not None
    lines: list[str] = []
    printed: list[str] = []
    out, err = process.stdout, process.stderr
    readers = [
        threading.Thread(target=lambda: printed.append(out.read()), daemon=True),
        threading.Thread(target=lambda: _keep_last(err, lines), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        while process.poll() is None:
            if not look(lines[-1].partition(":")[0] if lines else ""):
                raise StoppedError
            try:
                process.wait(_LOOK_EVERY_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    finally:
        _end(process)
        for reader in readers:
            reader.join(_GRACE_SECONDS)
    return _Output(process.returncode, "".join(printed), lines)


def _keep_last(stream: "object", lines: list[str]) -> None:
    for line in stream:  # type: ignore[attr-defined]
        lines.append(line.strip())
        del lines[:-_MAX_LINES]


def _end(process: "subprocess.Popen[str]") -> None:
    """End an evaluation with all its processes: politely, then at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
            process.wait(_GRACE_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _read(output: _Output, store: Store) -> Played:
    """Return the reports that an evaluation has written, and remove them from the store."""
    if output.code not in (0, 1):
        last = output.lines[-1] if output.lines else "it printed nothing"
        raise EvaluationError(f"the evaluation ended with code {output.code}: {last}")
    try:
        directory = store.directory(msgspec.json.decode(output.stdout)["run_id"])
        shown = load_report(directory / "report.json")
        full = full_report(directory, shown)
    except (msgspec.MsgspecError, KeyError, TypeError, ReportError) as error:
        raise EvaluationError(f"the evaluation left no report: {error}") from None
    shutil.rmtree(directory, ignore_errors=True)
    ours = next((one for one in full.failures if one.kind in _OURS), None)
    if ours is not None:
        raise EvaluationError(ours.message)
    return Played(shown, None if full is shown else full)
