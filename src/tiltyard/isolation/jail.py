"""The jail from the judge's side: start a guest, talk to it over two pipes, end it.

The guest is a Python of its own that runs one trusted module of this package, inside a namespace
(level A) or not (level B), and confines itself before it loads anything of a stranger's. What it
says, and how it ends, means nothing here: it is bytes, for others to check.
"""

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from tiltyard.isolation import bubblewrap
from tiltyard.isolation.limits import JailError, Level, Limits
from tiltyard.isolation.selfjail import LAYERS as GUEST_LAYERS
from tiltyard.isolation.view import View, view_for

JUDGE_LAYERS: Final = ("judge-not-dumpable", "empty-environment", "closed-descriptors")
LAYERS: Final = (*JUDGE_LAYERS, *bubblewrap.LAYERS, *GUEST_LAYERS)

FIRST_UID: Final = 61184
"""Of the users that root's guests become, one a slot: nobody's on any usual system."""
SLOTS: Final = 4096
_START_SECONDS: Final = 30
_END_SECONDS: Final = 30
_SET_DUMPABLE: Final = 4
_CHILD: Final = re.compile(rb'"child-pid": *(\d+)')
_PYTHON: Final = ("-s", "-P", "-S", "-B", "-X", "utf8")
_ENTRY: Final = str(Path(__file__).resolve().with_name("entry.py"))


class Guest:
    """A running guest. End it with `kill`, or use it in a `with` statement."""

    def __init__(  # noqa: PLR0913 - made by `start` alone
        self,
        process: subprocess.Popen[bytes],
        *,
        to_guest: int,
        from_guest: int,
        output: int,
        inmost: int | None,
        info: int,
        kept: int,
    ) -> None:
        self.to_guest = to_guest
        """Write here what the guest is to read."""
        self.from_guest = from_guest
        """Read here what the guest writes; its end means that the guest hung up or died."""
        self.pid = process.pid
        """Of bubblewrap at level A, of the guest at level B."""
        self._owner = os.getpid()
        self._process = process
        self._ended = os.pidfd_open(process.pid)
        self._inmost = inmost
        self._output = output
        # Not read any more, and yet open: bubblewrap is still writing, and would die of it.
        self._info = info
        self._kept = kept
        self._said: bytes | None = None

    def output(self) -> str:
        """Return what the guest printed: the beginning and the end, safe to show."""
        said = self._read_output() if self._said is None else self._said
        return "".join(map(_harmless, said.decode("utf-8", "replace")))

    def wait(self, seconds: float) -> bool:
        """Wait until the guest has ended by itself; False if it has not."""
        if self._said is not None:
            return True
        return bool(_poll(self._ended, seconds))

    @property
    def signal(self) -> int | None:
        """The signal that ended the guest, if it has ended so. A guest can pretend this."""
        code = self._process.poll()
        if code is None or 0 <= code <= 128:
            return None
        return -code if code < 0 else code - 128

    def kill(self) -> None:
        """End the guest and everything it started, and forget all but its output."""
        if self._said is not None:
            return
        if self._owner == os.getpid():  # A copy made by fork only lets go.
            self._end()
        self._said = self._read_output()
        ours = self._ended, self._inmost, self.to_guest, self.from_guest, self._output, self._info
        for descriptor in ours:
            if descriptor is not None:
                os.close(descriptor)

    def _end(self) -> None:
        if self._inmost is not None:
            # The namespace's first process: with it, and before its end is told, all others go.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inmost, signal.SIGKILL)
            _poll(self._inmost, _END_SECONDS)
            # bubblewrap now collects its child, and ends.
            _poll(self._ended, _END_SECONDS)
        if self._process.returncode is None:
            # Not collected yet, so the number still means this group and no other.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _read_output(self) -> bytes:
        half = self._kept // 2
        size = os.fstat(self._output).st_size
        if size <= self._kept:
            return os.pread(self._output, self._kept, 0)
        left_out = f"\n[{size - 2 * half} bytes left out]\n".encode()
        return (
            os.pread(self._output, half, 0) + left_out + os.pread(self._output, half, size - half)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


def start(  # noqa: PLR0913 - a guest has many sides
    command_module: str,
    arguments: Sequence[str] = (),
    *,
    level: Level,
    submission: Path | None = None,
    packages: Sequence[str] = (),
    limits: Limits | None = None,
    slot: int = 0,
    writable: bool = False,
    without: frozenset[str] = frozenset(),
) -> Guest:
    """Start a guest that runs `main` of a module of this package, confined.

    Guests that run at the same time need different `slot`s, so that root's guests are different
    users. `writable` gives it a small directory of its own to write to, at level A. `without`
    leaves layers out, to show in tests what they stop; nothing else may use it.
    """
    if level is Level.C:
        raise JailError(
            "a stranger's code runs in a jail or not at all, and this machine has none: "
            "use Linux 5.13 or newer with Landlock and seccomp (a container or WSL2 will do)"
        )
    if threading.current_thread() is not threading.main_thread():
        # The kernel ends a guest with the thread that started it.
        raise JailError("start guests from the main thread")
    if not 0 <= slot < SLOTS:
        raise JailError(f"slot {slot} is not below {SLOTS}")
    unknown = without - set(LAYERS)
    if unknown:
        raise JailError(f"there is no layer {min(unknown)!r}")
    limits = limits or Limits()
    view = view_for(tuple(sorted(set(packages))))
    place = None if submission is None else str(submission.resolve(strict=True))
    if "judge-not-dumpable" not in without:
        _hide_memory()
    told = _told(command_module, arguments, level, place, view, limits, slot)
    told["writable"] = bubblewrap.BOX if writable and level is Level.A else None
    told["without"] = sorted(without)
    with ExitStack() as ours:
        with ExitStack() as theirs:
            their_read, to_guest = _pipe(theirs, ours)
            from_guest, their_write = _pipe(ours, theirs)
            info, their_info = _pipe(ours, theirs)
            output = os.memfd_create("output", os.MFD_CLOEXEC)
            ours.callback(os.close, output)
            told |= {"read": their_read, "write": their_write}
            line = [view.executable, *_PYTHON, _ENTRY, json.dumps(told)]
            pass_on = [their_read, their_write]
            if level is Level.A:
                line = _bubblewrapped(line, view, place, their_info, without)
                pass_on.append(their_info)
            process = _spawn(line, output, pass_on, without)
        ours.callback(_abandon, process)
        inmost = _first_in_namespace(info) if level is Level.A else None
        guest = Guest(
            process,
            to_guest=to_guest,
            from_guest=from_guest,
            output=output,
            inmost=inmost,
            info=info,
            kept=limits.output,
        )
        ours.pop_all()
    return guest


def _told(  # noqa: PLR0913, PLR0917
    module: str,
    arguments: Sequence[str],
    level: Level,
    place: str | None,
    view: View,
    limits: Limits,
    slot: int,
) -> dict[str, object]:
    """Return what `entry` must know."""
    root = os.geteuid() == 0
    counts = msgspec.to_builtins(limits)
    if level is Level.B and not root:
        # Without a namespace of users the kernel counts everything this user runs.
        counts["processes"] += _tasks_of(os.getuid())
    return {
        "target": module,
        "arguments": list(arguments),
        "version": sys.version,
        "packages": view.packages,
        "readable": [*view.readable, *([] if place is None else [place])],
        "submission": place,
        "limits": counts,
        "uid": FIRST_UID + slot if root else None,
        "parent": os.getpid() if level is Level.B else None,
    }


def _bubblewrapped(
    command: list[str], view: View, place: str | None, info: int, without: frozenset[str]
) -> list[str]:
    binary = bubblewrap.find_bubblewrap()
    if binary is None:
        raise JailError(
            "level A needs bubblewrap: apt-get install bubblewrap, or pip install 'tiltyard[bwrap]'"
        )
    visible = view.readable if place is None else (*view.readable, place)
    sandbox = bubblewrap.Sandbox(
        visible=visible,
        hidden=view.hidden,
        command=tuple(command),
        info_fd=info,
        root=os.geteuid() == 0,
        without=without,
    )
    return bubblewrap.arguments(binary, sandbox)


def _spawn(
    line: list[str], output: int, pass_on: list[int], without: frozenset[str]
) -> subprocess.Popen[bytes]:
    environment = {"PYTHONHASHSEED": "0"}
    if "empty-environment" in without:
        environment |= os.environ
    close = "closed-descriptors" not in without
    if not close:
        for descriptor in pass_on:
            os.set_inheritable(descriptor, True)  # noqa: FBT003
    try:
        return subprocess.Popen(  # noqa: S603 - a list, no shell, paths that we found ourselves
            line,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            close_fds=close,
            pass_fds=pass_on if close else (),
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise JailError(f"{line[0]} cannot be started: {error.strerror}") from error


def _first_in_namespace(info: int) -> int | None:
    """Return a handle on the namespace's first process, as soon as bubblewrap tells its number.

    Killing bubblewrap itself would leave it to the kernel to end the rest, at some later time.
    None if there is no namespace: bubblewrap has failed, and its output says why.
    """
    told = b""
    while b"}" not in told:
        if not _poll(info, _START_SECONDS):
            raise JailError("bubblewrap does not answer")
        some = os.read(info, 4096)
        if not some:
            return None
        told += some
    found = _CHILD.search(told)
    if found is None:
        raise JailError("bubblewrap does not tell the number of its child")
    try:
        return os.pidfd_open(int(found[1]))
    except ProcessLookupError:
        return None


def _abandon(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _hide_memory() -> None:
    """Close the judge's own /proc entries to others of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0):
        raise JailError("the judge cannot hide its memory")


def _tasks_of(uid: int) -> int:
    """Count the threads that a user has now."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                # A process that hides its memory belongs to root here, so ask for its status.
                status = Path(entry.path, "status").read_text(encoding="utf-8", errors="replace")
                fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                if fields["Uid"].split()[0] == str(uid):
                    count += int(fields["Threads"])
    return count


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Open a pipe, and leave each end to whoever is to close it."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _poll(descriptor: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _harmless(character: str) -> str:
    """Keep a stranger's output from moving the cursor of whoever reads it."""
    return (
        character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
    )
