"""The fork server from the judge's side: start it, request guests from it, end it.

A fork server is a Python process that has imported one trusted module of this package, inside
namespaces (level A) or not (level B). A guest is a fork of it that confines itself before it loads
a submission. `guest/fork_loop.py` is the program that runs in the fork server.
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
from tiltyard.isolation.host.guest_process import END_SECONDS, Ends, JailedGuest, poll
from tiltyard.isolation.host.limits import JailError, Level, Limits
from tiltyard.isolation.host.slots import SLOTS
from tiltyard.isolation.host.visible_paths import View, view_for
from tiltyard.isolation.host.watcher import start_watcher, sweep

JUDGE_LAYERS: Final = ("judge-not-dumpable", "empty-environment", "closed-descriptors")
LAYERS: Final = (*JUDGE_LAYERS, *bubblewrap.LAYERS, *GUEST_LAYERS)

FIRST_UID: Final = 61184
"""The first user id of root's guests, one for each slot. Usual systems have no such users."""
_START_SECONDS: Final = 30
_MAX_OUTPUT_BYTES: Final = 2_000
_SET_DUMPABLE: Final = 4
_CHILD_PID: Final = re.compile(rb'"child-pid": *(\d+)')
_PYTHON_FLAGS: Final = ("-s", "-P", "-S", "-B", "-X", "utf8")
_FORK_LOOP: Final = str(Path(__file__).resolve().parents[1] / "guest" / "fork_loop.py")


class ForkServer:
    """A process that runs trusted code only, and forks a guest for each request.

    It imports everything once, so a guest starts within a few milliseconds. `without` leaves
    layers of the jail out: only for tests, which show what each layer stops.
    """

    def __init__(  # noqa: PLR0913 - the settings of a guest
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
        self._submission = None if submission is None else str(submission.resolve(strict=True))
        self._owner = os.getpid()
        self._requested: JailedGuest | None = None
        self._ready = False
        """Whether a supervisor waits for a request."""
        self._handles: list[int] = []
        if level is Level.B and os.geteuid() == 0:
            _check_open(self._view, self._submission)
        if "judge-not-dumpable" not in without:
            _hide_memory()
        with ExitStack() as ours:
            with ExitStack() as theirs:
                self._socket, their_socket = socket.socketpair(type=socket.SOCK_SEQPACKET)
                ours.callback(self._socket.close)
                theirs.callback(their_socket.close)
                lifeline, self._lifeline = _pipe(theirs, ours)
                info, their_info = _pipe(ours, theirs)
                self._output = os.memfd_create("output", os.MFD_CLOEXEC)
                ours.callback(os.close, self._output)
                watcher = None if "die-with-parent" in without else start_watcher(lifeline)
                if watcher is not None:
                    ours.callback(sweep, watcher, self._lifeline)
                self._group = 0 if watcher is None else watcher.pid
                line = self._command(target, arguments, their_socket.fileno())
                pass_on = [their_socket.fileno()]
                if level is Level.A:
                    line = self._bubblewrapped(line, their_info)
                    pass_on.append(their_info)
                process = _spawn(line, self._output, pass_on, self._group, without)
                ours.callback(_abandon, process)
                if watcher is not None:
                    # First of all: once bubblewrap is dead, nothing leads to its child.
                    ours.callback(sweep, watcher, self._lifeline)
                self._group = self._group or process.pid
                self._processes = [process] if watcher is None else [process, watcher]
            self._inmost = _first_in_namespace(info) if level is Level.A else None
            # Kept open: bubblewrap still writes to it, and a closed pipe would kill bubblewrap.
            self._info = info
            ours.pop_all()
        self._closed = False

    def _command(self, target: str, arguments: Sequence[str], socket_fd: int) -> list[str]:
        settings = {
            "target": target,
            "arguments": list(arguments),
            "version": sys.version,
            "packages": self._view.packages,
            "socket": socket_fd,
            "parent": os.getpid() if self._level is Level.B else None,
            "namespaces": self._namespaces,
            "user_namespace": self._level is Level.A and os.geteuid() != 0,
            "steps": self._steps(),
            "roots": bubblewrap.ROOTS,
            "box": bubblewrap.BOX,
        }
        return [self._view.executable, *_PYTHON_FLAGS, _FORK_LOOP, json.dumps(settings)]

    def _bubblewrapped(self, command: list[str], info: int) -> list[str]:
        binary = bubblewrap.find_bubblewrap()
        if binary is None:
            raise JailError(
                "level A needs bubblewrap: apt-get install bubblewrap, "
                "or pip install 'tiltyard[bwrap]'"
            )
        own = () if self._submission is None else (self._submission,)
        sandbox = bubblewrap.Sandbox(
            visible=(*self._view.readable, *own),
            hidden=self._view.hidden,
            command=tuple(command),
            info_fd=info,
            watcher=self._group,
            root=os.geteuid() == 0,
            without=self._without,
        )
        return bubblewrap.arguments(binary, sandbox)

    def _steps(self) -> list[bubblewrap.Step] | None:
        """Return how to build a guest's root directory, if it gets one."""
        if self._level is Level.B or "mounts" in self._without:
            return None
        if self._submission is None:
            return bubblewrap.steps(self._view.readable, self._view.hidden)
        steps = bubblewrap.steps((*self._view.readable, self._submission), self._view.hidden)
        if all(step.path != self._submission for step in steps):
            return [*steps, bubblewrap.Step("cover", self._submission)]
        return [
            step._replace(kind="copy") if step.path == self._submission else step for step in steps
        ]

    def request(
        self,
        *,
        limits: Limits | None = None,
        slot: int = 0,
        writable: bool = False,
        last: bool = False,
    ) -> JailedGuest:
        """Request a confined guest, without waiting until it has started.

        Guests that run at the same time need different `slot`s, so that root's guests run as
        different users. With `last`, the fork server ends with this guest.
        """
        _check(self._level, slot, self._without)
        if self._requested is not None:
            # One request at a time: the answers come in the order in which guests start.
            with suppress(JailError):
                self._requested.wait_until_started()
        self._wait_until_ready()
        limits = limits or Limits()
        request = json.dumps(self._settings(limits, slot, writable=writable)).encode()
        with ExitStack() as ours:
            with ExitStack() as theirs:
                their_read, to_guest = _pipe(theirs, ours)
                from_guest, their_write = _pipe(ours, theirs)
                ended, their_ended = _pipe(ours, theirs)
                output = os.memfd_create("output", os.MFD_CLOEXEC)
                ours.callback(os.close, output)
                with suppress(OSError):
                    self._ready = False
                    socket.send_fds(
                        self._socket, [request], [their_read, their_write, output, their_ended]
                    )
            ends = Ends(to_guest, from_guest, output, ended)
            when_ended = self.close if last else None
            guest = JailedGuest(ends, self._receive_handle, limits.output, when_ended)
            ours.pop_all()
        self._requested = guest
        return guest

    def _wait_until_ready(self) -> None:
        """Wait until a supervisor is ready for a request.

        The pipes of a guest are made after this, so their times say nothing about the fork server.
        """
        while not self._ready:
            self._receive()

    def _receive_handle(self) -> int:
        """Return a pidfd of the requested process."""
        while not self._handles:
            self._receive()
        return self._handles.pop()

    def _receive(self) -> None:
        """Receive one message: a supervisor is ready, or a guest has started."""
        message = b""
        handles: list[int] = []
        if poll(self._socket.fileno(), _START_SECONDS):
            with suppress(OSError):
                message, handles, _, _ = socket.recv_fds(self._socket, 16, 1)
        if not message:
            output = os.pread(self._output, _MAX_OUTPUT_BYTES, 0).decode("utf-8", "replace").strip()
            raise JailError(f"cannot start a guest: {output or 'the fork server gives no reason'}")
        self._handles += handles
        self._ready = self._ready or not handles

    def _settings(self, limits: Limits, slot: int, *, writable: bool) -> dict[str, object]:
        root = os.geteuid() == 0
        counts = msgspec.to_builtins(limits)
        if not root and self._level is Level.B:
            # The kernel counts processes by user, so add the other processes of this user.
            counts["processes"] += _tasks_of(os.getuid())
        return {
            "readable": [
                *self._view.readable,
                *([] if self._submission is None else [self._submission]),
            ],
            "submission": self._submission,
            "limits": counts,
            "uid": FIRST_UID + slot if root else None,
            "writable": bubblewrap.BOX if writable and self._level is Level.A else None,
            "without": sorted(self._without),
        }

    def close(self) -> None:
        """End the fork server and all of its guests."""
        if self._closed:
            return
        self._closed = True
        if self._owner == os.getpid():  # A forked copy of the judge only closes its descriptors.
            self._end()
        self._socket.close()
        for end in (self._lifeline, self._info, self._output, self._inmost):
            if end is not None:
                os.close(end)

    def _end(self) -> None:
        ended = os.pidfd_open(self._processes[0].pid)
        # `shutdown` works for forked copies too, which hold the same socket.
        self._socket.shutdown(socket.SHUT_RDWR)
        try:
            if self._inmost is not None and self._namespaces:
                # Kill the namespace's first process. After killing bubblewrap itself, the kernel
                # would end the other processes at some later time.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._inmost, signal.SIGKILL)
                poll(self._inmost, END_SECONDS)
            # bubblewrap collects its child now. Without it, the fork server waits for its guests.
            poll(ended, END_SECONDS)
            # The group's first process is not collected yet, so its id is not used again.
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
            for process in self._processes:
                process.wait()
        finally:
            os.close(ended)


def start_guest(  # noqa: PLR0913 - the settings of a guest
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
) -> JailedGuest:
    """Start one confined guest that runs `main` of the module `target`.

    `writable` gives it a small writable directory of its own, at level A.
    """
    _check(level, slot, without)
    fork_server = ForkServer(
        target,
        arguments,
        level=level,
        submission=submission,
        packages=packages,
        without=without,
    )
    try:
        guest = fork_server.request(limits=limits, slot=slot, writable=writable, last=True)
        guest.wait_until_started()
    except BaseException:
        fork_server.close()
        raise
    return guest


def _check(level: Level, slot: int, without: frozenset[str]) -> None:
    if level is Level.C:
        raise JailError(
            "submissions run in a jail or not at all, and this machine has no jail: "
            "use Linux 5.13 or newer with Landlock and seccomp (a container or WSL2 works too)"
        )
    if threading.current_thread() is not threading.main_thread():
        # The kernel kills a guest when the thread that started it ends.
        raise JailError("start guests from the main thread")
    if not 0 <= slot < SLOTS:
        raise JailError(f"slot {slot} is out of range: use 0 to {SLOTS - 1}")
    unknown = without - set(LAYERS)
    if unknown:
        raise JailError(f"unknown layer {min(unknown)!r}; the layers are {', '.join(LAYERS)}")


def _check_open(view: View, submission: str | None) -> None:
    """Raise if root's guests, which run as other users, cannot read their own Python.

    A mount namespace shows them any directory. Without one, all parent directories must be open.
    """
    for path in (
        os.__file__,
        view.packages["tiltyard"],
        *([] if submission is None else [submission]),
    ):
        for above in (*reversed(Path(path).parents), Path(path)):
            if not above.stat().st_mode & (stat.S_IXOTH if above.is_dir() else stat.S_IROTH):
                raise JailError(
                    f"root's guests run as another user, who cannot read {path}: {above} is closed "
                    "to others. Install Python and Tiltyard elsewhere, or bubblewrap (level A)"
                )


def _spawn(
    line: list[str], output: int, pass_on: list[int], group: int, without: frozenset[str]
) -> subprocess.Popen[bytes]:
    environment = dict(bubblewrap.ENVIRONMENT)
    if "empty-environment" in without:
        environment |= os.environ
    close = "closed-descriptors" not in without
    if not close:
        for descriptor in pass_on:
            os.set_inheritable(descriptor, True)  # noqa: FBT003
    try:
        return subprocess.Popen(  # noqa: S603 - no shell, and only paths that we found ourselves
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
    """Return a pidfd of the namespace's first process, as soon as bubblewrap reports its id.

    Return None if bubblewrap has failed; its output says why.
    """
    report = b""
    while b"}" not in report:
        if not poll(info, _START_SECONDS):
            raise JailError(f"bubblewrap did not start within {_START_SECONDS} seconds")
        some = os.read(info, 4096)
        if not some:
            return None
        report += some
    found = _CHILD_PID.search(report)
    if found is None:
        raise JailError("bubblewrap did not report the process id of its child")
    try:
        return os.pidfd_open(int(found[1]))
    except ProcessLookupError:
        return None


def _abandon(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _hide_memory() -> None:
    """Close the judge's /proc entries to other processes of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0):
        raise JailError("the judge cannot hide its memory: prctl(PR_SET_DUMPABLE) failed")


def _tasks_of(uid: int) -> int:
    """Return how many threads a user has now."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                # /proc shows a process that hides its memory as root's, so read its status.
                status = Path(entry.path, "status").read_text(encoding="utf-8", errors="replace")
                fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                if fields["Uid"].split()[0] == str(uid):
                    count += int(fields["Threads"])
    return count


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Open a pipe. `reader` and `writer` close its ends."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write
