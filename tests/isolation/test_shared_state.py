"""Guests of one pool share nothing: no marks, no limits.

In the first test, the first guest of a pool looks at everything that it can see, the second one
tries to change it, and the third one looks again. It must see what the first one saw.
"""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from tiltyard.isolation.host.fork_server import start_guest
from tiltyard.isolation.host.limits import Level, Limits

LEVELS = pytest.mark.parametrize("level", ["A", "B"])

LOOK: Final = """
import ctypes, fcntl, mmap, os, resource, select, signal, struct, threading, time

libc = ctypes.CDLL(None, use_errno=True)
LAST = 64
READ, WRITE = 62, 63
NONBLOCKING = 0x5421
GET = {"flags": 3, "descriptor": 1, "owner": 9, "signal": 11, "lease": 1025, "notify": 1026,
       "pipe": 1032, "seals": 1034, "owner_ex": 16}
LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]

def attempt(do, *given):
    try:
        return do(*given)
    except (OSError, ValueError, RuntimeError, struct.error) as error:
        return f"{type(error).__name__} {getattr(error, 'errno', '')}"

def describe(fd):
    found = {name: attempt(fcntl.fcntl, fd, number) for name, number in GET.items()}
    if fd not in (READ, WRITE):  # how much was read or written is no state of others
        found["offset"] = attempt(os.lseek, fd, 0, os.SEEK_CUR)
        found["size"] = attempt(lambda: os.fstat(fd).st_size)
    found["mode"] = attempt(lambda: oct(os.fstat(fd).st_mode))
    found["locked"] = attempt(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    found["terminal"] = os.isatty(fd)
    return found

def read(path):
    with open(path) as file:
        return file.read()

def mask():
    now = os.umask(0o22)
    os.umask(now)
    return now

def look():
    return {
        "descriptors": {str(fd): describe(fd) for fd in range(LAST)},
        "limits": {name: attempt(resource.getrlimit, getattr(resource, name)) for name in LIMITS},
        "umask": mask(),
        "directory": attempt(os.getcwd),
        "nice": attempt(os.getpriority, os.PRIO_PROCESS, 0),
        "cores": attempt(os.sched_getaffinity, 0),
        "policy": attempt(os.sched_getscheduler, 0),
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "handlers": {int(number): str(signal.getsignal(number)) for number in range(1, 65)},
        "prctl": {number: libc.prctl(number, 0, 0, 0, 0) for number in (2, 3, 21, 30, 39, 66)},
        "segments": [libc.shmget(0x7117, 0, 0), libc.semget(0x7117, 0, 0), libc.msgget(0x7117, 0)],
        "queue": libc.syscall(240, b"tiltyard", 0, 0, None),
        "score": attempt(read, "/proc/self/oom_score_adj"),
        "status": attempt(read, "/proc/self/status"),
        "cgroup": attempt(read, "/proc/self/cgroup"),
        "terminals": attempt(os.listdir, "/dev/pts"),
        "shared": attempt(os.listdir, "/dev/shm"),
        "box": attempt(os.listdir, "/box"),
        "watches": [libc.inotify_init1(0), libc.fanotify_init(0, 0)],
        "pipes": attempt(os.pipe),
        "users": [os.getresgid(), os.getgroups()],
    }
"""

MARK: Final = """
def mark(given):
    for fd in range(LAST):
        every = os.O_NONBLOCK | os.O_APPEND | os.O_ASYNC | os.O_DIRECT | os.O_NOATIME
        for flags in (os.O_NONBLOCK, os.O_APPEND, os.O_ASYNC, os.O_DIRECT, os.O_NOATIME, every):
            if fd not in (READ, WRITE):
                attempt(lambda: fcntl.fcntl(fd, 4, fcntl.fcntl(fd, 3) | flags))
        if fd in (1, 2):
            os.write(fd, b"moves the offset\\n")
        elif fd not in (READ, WRITE):
            attempt(fcntl.ioctl, fd, NONBLOCKING, struct.pack("i", 1))
            attempt(os.lseek, fd, 7, os.SEEK_SET)
            attempt(os.ftruncate, fd, 7)
        attempt(fcntl.fcntl, fd, 8, os.getpid())
        attempt(fcntl.fcntl, fd, 10, int(signal.SIGUSR1))
        attempt(fcntl.fcntl, fd, 1024, fcntl.F_WRLCK)
        attempt(fcntl.fcntl, fd, 1026, 1)
        attempt(fcntl.fcntl, fd, 1031, 1 << 20)
        attempt(fcntl.fcntl, fd, 1033, 0xF)
        attempt(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        attempt(fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        attempt(os.fchmod, fd, 0o777)
    for name in LIMITS:
        attempt(resource.setrlimit, getattr(resource, name), (1, 1))
    os.umask(0)
    attempt(os.chdir, "/")
    attempt(os.setpriority, os.PRIO_PROCESS, 0, 19)
    attempt(os.setpriority, os.PRIO_PGRP, 0, 19)
    attempt(os.setpriority, os.PRIO_USER, 0, 19)
    attempt(os.sched_setaffinity, 0, {0})
    for number in range(1, 65):
        attempt(signal.signal, number, signal.SIG_IGN)
    attempt(signal.pthread_sigmask, signal.SIG_BLOCK, range(1, 65))
    for number in range(34, 65):
        libc.syscall(234, os.getpid(), threading.get_native_id(), number)
    for number in (1, 4, 15, 22, 23, 28, 29, 31, 36, 38):
        libc.prctl(number, 1, 0, 0, 0)
    libc.shmget(0x7117, 4096, 0o1666)
    libc.semget(0x7117, 1, 0o1666)
    libc.msgget(0x7117, 0o1666)
    libc.syscall(240, b"tiltyard", 0o102, 0o666, None)
    for path in ("/proc/self/oom_score_adj", "/dev/shm/mark", "/box/mark", "/tmp/mark"):
        attempt(lambda: open(path, "w").write("7"))
"""

PROBE: Final = """
def probe(given):
    if given["turn"] == 1:
        mark(given)
    return look()
"""


@LEVELS
def test_guest_leaves_no_mark_for_the_next_one(level: str, judge: Any) -> None:
    before, during, after = judge.run_in_one_pool(LOOK + MARK + PROBE, level, 3)
    # The control: the probe does see marks. The guest that left them sees them itself.
    assert during["descriptors"]["0"] != before["descriptors"]["0"]
    assert during["handlers"] != before["handlers"]
    if level == "B" and judge.uid:
        # The kernel counts all processes of the user, so this limit depends on their number.
        for seen in (before, after):
            del seen["limits"]["RLIMIT_NPROC"]
    assert after == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into a guest")
def test_guests_share_no_writable_memory(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    target = "tiltyard.isolation.guest.serve"
    with start_guest(target, level=Level.A, submission=tmp_path) as guest:
        lines = Path(f"/proc/{guest.pid}/maps").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 50
    assert not [line for line in lines if line.split()[1][1] == "w" and line.split()[1][3] == "s"]


READS_STDIN: Final = """
import os, sys
def probe(given):
    return [sys.stdin.read(), os.read(0, 10).decode(), sys.stdin.isatty()]
"""


@LEVELS
def test_standard_input_is_empty(level: str, judge: Any) -> None:
    assert judge.run_in_one_pool(READS_STDIN, level, 2) == [["", "", False]] * 2


TAKES_ALL: Final = """
import ctypes, json, os, signal, threading, time

def probe(given):
    threads, signals = 1, 0
    try:
        while threads < 99:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            threads += 1
    except RuntimeError:
        pass
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX])
    libc, own = ctypes.CDLL(None), threading.get_native_id()
    while signals < 999 and libc.tgkill(os.getpid(), own, int(signal.SIGRTMAX)) == 0:
        signals += 1
    os.write(1, json.dumps({"result": [threads, signals]}).encode() + b"\\n")
    time.sleep(60)
"""


def test_guests_have_equal_limits_that_they_do_not_share(judge: Any) -> None:
    """The same for every user, and for guests that live at the same time."""
    found = judge.run_in_one_pool(TAKES_ALL, "A", 4, together=True)
    assert found == [[Limits().processes, 64]] * 4


THREAD_POOL: Final = """
from concurrent.futures import ThreadPoolExecutor

def probe(given):
    with ThreadPoolExecutor(15) as pool:
        return sum(pool.map(len, ["a" * n for n in range(200)]))
"""


def test_submission_with_fifteen_threads_works(judge: Any) -> None:
    assert judge.run_in_one_pool(THREAD_POOL, "A", 3) == [19900] * 3
