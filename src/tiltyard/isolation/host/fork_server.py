"""The jail from the judge's side: start a guest, talk to it over two pipes, end it.

A nursery is a Python that has imported one trusted module of this package, inside a namespace
(level A) or not (level B). A guest is a copy of it that confines itself before it loads anything
of a stranger's. What it says, and how it ends, means nothing here: it is for others to check.
"""

import ctypes
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from tiltyard.isolation.confinement.selfjail import LAYERS as GUEST_LAYERS
from tiltyard.isolation.host import bubblewrap
from tiltyard.isolation.host.guest_process import END_SECONDS, Ends, Guest, poll
from tiltyard.isolation.host.limits import JailError, Level, Limits
from tiltyard.isolation.host.visible_paths import View, view_for

JUDGE_LAYERS: Final = ("judge-not-dumpable", "empty-environment", "closed-descriptors")
LAYERS: Final = (*JUDGE_LAYERS, *bubblewrap.LAYERS, *GUEST_LAYERS)

FIRST_UID: Final = 61184
"""Of the users that root's guests become, one a slot: nobody's on any usual system."""
SLOTS: Final = 4096
_START_SECONDS: Final = 30
_MAX_SAID: Final = 2_000
_BESIDE: Final = 5
"""One user: the nursery, a guest that waits its turn, who attends to either, and to the next."""
_SET_DUMPABLE: Final = 4
_CHILD: Final = re.compile(rb'"child-pid": *(\d+)')
_PYTHON: Final = ("-s", "-P", "-S", "-B", "-X", "utf8")
_ENTRY: Final = str(Path(__file__).resolve().parents[1] / "guest" / "fork_loop.py")


class ForkServer:
    """A process that runs nothing of a stranger's, and of which every guest is a copy.

    What is trusted is imported once; a copy takes a few milliseconds. `without` leaves layers
    out, to show in tests what they stop; nothing else may use it.
    """

    def __init__(  # noqa: PLR0913 - a guest has many sides
        self,
        target: str,
        arguments: Sequence[str] = (),
        *,
        level: Level,
        submission: Path | None = None,
        packages: Sequence[str] = (),
        without: frozenset[str] = frozenset(),
    ) -> None:
        _check(level, 0, without)
        self._level, self._without = level, without
        self._namespaces = level is Level.A and "pids" not in without
        self._view = view_for(tuple(sorted(set(packages))))
        self._place = None if submission is None else str(submission.resolve(strict=True))
        self._owner = os.getpid()
        self._ordered: Guest | None = None
        if level is Level.B and os.geteuid() == 0:
            _check_open(self._view, self._place)
        if "judge-not-dumpable" not in without:
            _hide_memory()
        with ExitStack() as ours:
            with ExitStack() as theirs:
                self._door, their_door = socket.socketpair(type=socket.SOCK_SEQPACKET)
                ours.callback(self._door.close)
                theirs.callback(their_door.close)
                lifeline, self._lifeline = _pipe(theirs, ours)
                info, their_info = _pipe(ours, theirs)
                self._output = os.memfd_create("output", os.MFD_CLOEXEC)
                ours.callback(os.close, self._output)
                line = self._command(target, arguments, their_door.fileno())
                pass_on = [their_door.fileno()]
                if level is Level.A:
                    line = _bubblewrapped(line, self._view, self._place, their_info, without)
                    pass_on.append(their_info)
                watcher = None if "die-with-parent" in without else _watch(lifeline)
                if watcher is not None:
                    ours.callback(_abandon, watcher)
                self._group = 0 if watcher is None else watcher.pid
                process = _spawn(line, self._output, pass_on, self._group, without)
                ours.callback(_abandon, process)
                self._group = self._group or process.pid
                self._processes = [process] if watcher is None else [process, watcher]
            self._inmost = _first_in_namespace(info) if level is Level.A else None
            # Not read any more, and yet open: bubblewrap is still writing, and would die of it.
            self._info = info
            ours.pop_all()
        self._closed = False

    def _command(self, target: str, arguments: Sequence[str], door: int) -> list[str]:
        told = {
            "target": target,
            "arguments": list(arguments),
            "version": sys.version,
            "packages": self._view.packages,
            "door": door,
            "parent": os.getpid() if self._level is Level.B else None,
            "namespaces": self._namespaces,
        }
        return [self._view.executable, *_PYTHON, _ENTRY, json.dumps(told)]

    def order(
        self,
        *,
        limits: Limits | None = None,
        slot: int = 0,
        writable: bool = False,
        last: bool = False,
    ) -> Guest:
        """Start a guest, confined, and do not wait until it is born.

        Guests that run at the same time need different `slot`s, so that root's guests are
        different users. The nursery ends with its `last` one.
        """
        _check(self._level, slot, self._without)
        if self._ordered is not None:
            # Births are told in the order in which they happen: one at a time.
            with suppress(JailError):
                self._ordered.wait_until_born()
        limits = limits or Limits()
        asked = json.dumps(self._asked(limits, slot, writable=writable)).encode()
        with ExitStack() as ours:
            with ExitStack() as theirs:
                their_read, to_guest = _pipe(theirs, ours)
                from_guest, their_write = _pipe(ours, theirs)
                ended, their_ended = _pipe(ours, theirs)
                output = os.memfd_create("output", os.MFD_CLOEXEC)
                ours.callback(os.close, output)
                with suppress(OSError):
                    socket.send_fds(
                        self._door, [asked], [their_read, their_write, output, their_ended]
                    )
            ends = Ends(to_guest, from_guest, output, ended)
            guest = Guest(ends, self._born, limits.output, self.close if last else None)
            ours.pop_all()
        self._ordered = guest
        return guest

    def _born(self) -> int:
        """Return a handle on the process that was asked for."""
        handles: list[int] = []
        if poll(self._door.fileno(), _START_SECONDS):
            with suppress(OSError):
                _, handles, _, _ = socket.recv_fds(self._door, 16, 1)
        if not handles:
            said = os.pread(self._output, _MAX_SAID, 0).decode("utf-8", "replace").strip()
            raise JailError(f"no guest can be started: {said or 'nobody says why'}")
        return handles[0]

    def _asked(self, limits: Limits, slot: int, *, writable: bool) -> dict[str, object]:
        root = os.geteuid() == 0
        counts = msgspec.to_builtins(limits)
        if not root:
            # The kernel counts by user, so those beside the guest have to be allowed for.
            beside = _tasks_of(os.getuid()) if self._level is Level.B else _BESIDE
            counts["processes"] += beside
        return {
            "readable": [*self._view.readable, *([] if self._place is None else [self._place])],
            "submission": self._place,
            "limits": counts,
            "uid": FIRST_UID + slot if root else None,
            "writable": bubblewrap.BOX if writable and self._level is Level.A else None,
            "without": sorted(self._without),
        }

    def close(self) -> None:
        """End it when its guests are gone; those that are not go with it."""
        if self._closed:
            return
        self._closed = True
        if self._owner == os.getpid():  # A copy made by fork only lets go.
            self._end()
        self._door.close()
        for end in (self._lifeline, self._info, self._output, self._inmost):
            if end is not None:
                os.close(end)

    def _end(self) -> None:
        ended = os.pidfd_open(self._processes[0].pid)
        # For all that hold it, copies made by fork among them.
        self._door.shutdown(socket.SHUT_RDWR)
        try:
            if self._inmost is not None and self._namespaces:
                # The namespace's first process. Killing bubblewrap itself would leave it to the
                # kernel to end the rest, at some later time.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._inmost, signal.SIGKILL)
                poll(self._inmost, END_SECONDS)
            # bubblewrap now collects its child; without it, the nursery waits for its guests.
            poll(ended, END_SECONDS)
            # Its first process is not collected yet, so the number still means this group.
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
            for process in self._processes:
                process.wait()
        finally:
            os.close(ended)


def start(  # noqa: PLR0913 - a guest has many sides
    target: str,
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
    """Start one guest that runs `main` of a module of this package, confined.

    `writable` gives it a small directory of its own to write to, at level A.
    """
    _check(level, slot, without)
    nursery = ForkServer(
        target,
        arguments,
        level=level,
        submission=submission,
        packages=packages,
        without=without,
    )
    try:
        guest = nursery.order(limits=limits, slot=slot, writable=writable, last=True)
        guest.wait_until_born()
    except BaseException:
        nursery.close()
        raise
    return guest


def _check(level: Level, slot: int, without: frozenset[str]) -> None:
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


def _check_open(view: View, place: str | None) -> None:
    """Refuse where root's guests, who are other users, could not read their own Python.

    A namespace shows it to them wherever it lies; without one, every directory has to be open.
    """
    for path in (os.__file__, view.packages["tiltyard"], *([] if place is None else [place])):
        for above in (*reversed(Path(path).parents), Path(path)):
            if not above.stat().st_mode & (stat.S_IXOTH if above.is_dir() else stat.S_IROTH):
                raise JailError(
                    f"a guest of root's is another user, who cannot read {path}: {above} is closed "
                    "to others. Install Python and Tiltyard elsewhere, or get bubblewrap (level A)"
                )


_WATCH: Final = """
read _ <&{0}
for turn in 1 2 3 4 5 6 7 8; do
  for each in /proc/[0-9]*; do
    each=${{each#/proc/}}
    [ "$each" = $$ ] && continue
    read -r told < /proc/$each/stat || continue
    set -- ${{told##*) }}
    [ "$3" = $$ ] || continue
    kill -STOP $each; children=
    read -r children < /proc/$each/task/$each/children
    kill -9 $children $each
  done
  sleep 0.05
done
kill -9 0
"""
"""Everybody of the group is held, so that he has no more children, and killed after his children,
whom a session of their own takes out of the group. Somebody may still be on his way into the group:
so it is looked over a few times."""


def _watch(lifeline: int) -> subprocess.Popen[bytes]:
    """Start somebody who kills his whole process group when the other end of a pipe is closed.

    bubblewrap asks to die with its parent only when it is well under way. If the judge is killed
    before, bubblewrap's child waits for it for ever: the first process of a namespace, which only
    a process outside can end.
    """
    return subprocess.Popen(  # noqa: S603 - a number is all that varies
        ["/bin/sh", "-c", _WATCH.format(lifeline)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[lifeline],
        env={},
        process_group=0,
    )


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
    line: list[str], output: int, pass_on: list[int], group: int, without: frozenset[str]
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
            process_group=group,
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
        if not poll(info, _START_SECONDS):
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
