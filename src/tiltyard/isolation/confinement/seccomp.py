"""seccomp: the system-call filter of a guest, as a classic BPF program.

The rules are in two places. `syscalls.py` lists the calls by name: ALLOWED, FATAL, and CHECKED.
`_checks` below says which arguments the CHECKED calls may have. Every other call fails with EPERM.
The filter does not know files; Landlock does. This runs inside the guest, so it imports the
standard library only.
"""

import ctypes
import errno
import os
import struct
import sys
from functools import lru_cache
from typing import Final

from tiltyard.isolation.confinement.syscalls import ALLOWED, CHECKED, FATAL, Table

MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's number of each architecture, in the order of the columns in `syscalls.py`."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER: Final = 1
_GET_ACTION_AVAIL: Final = 2
_TSYNC: Final = 1

FIRST_PID: Final = 1
"""The id of a guest in a process namespace of its own."""

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
REFUSE: Final = 0x00050000 | errno.EPERM
ABSENT: Final = 0x00050000 | errno.ENOSYS

# struct seccomp_data: the call's number, the architecture, an address, six arguments.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_AND: Final = 0x54
_RETURN: Final = 0x06

_X32: Final = 0x40000000
"""x32 calls have the architecture x86_64 and this bit set. They are a second table of calls, so
the filter kills them."""

_THREAD: Final = 0x00010000 | 0x00000100 | 0x00000800  # CLONE_THREAD, CLONE_VM, CLONE_SIGHAND
_NEVER: Final = (
    0x7E020080  # CLONE_NEW*: every namespace, including the time namespace
    | 0x00001000  # CLONE_PIDFD
    | 0x00002000  # CLONE_PTRACE
    | 0x00004000  # CLONE_VFORK
    | 0x00008000  # CLONE_PARENT
    | 0x00800000  # CLONE_UNTRACED
)
_FCNTL: Final = (0, 1, 2, 3, 4, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL and F_DUPFD_CLOEXEC."""
_IOCTL: Final = (0x5401, 0x5413, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONBIO, FIONCLEX and FIOCLEX, which `open` and `print` use."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def has_seccomp() -> bool:
    """Return whether the kernel has seccomp filters and `syscalls.py` knows the architecture."""
    machine = _machine()
    if machine is None:
        return False
    action = ctypes.c_uint32(KILL)
    asked = _libc.syscall(_SECCOMP[machine], _GET_ACTION_AVAIL, 0, ctypes.byref(action))
    return bool(asked == 0)


def prepare() -> None:
    """Build the filter of a guest in a process namespace, for all forks of this process."""
    machine = _machine()
    if machine is not None:
        program(machine, FIRST_PID)


def install(pid: int) -> None:
    """Install the filter for all threads of this process, for good."""
    machine = _machine()
    if machine is None:
        raise OSError(errno.ENOSYS, f"syscalls.py has no table for {os.uname().machine}")
    code = program(machine, pid)
    buffer = ctypes.create_string_buffer(code, len(code))
    filled = _Program(len(code) // 8, ctypes.addressof(buffer))
    done = _libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _TSYNC, ctypes.byref(filled))
    if done:
        number = ctypes.get_errno() if done < 0 else errno.ESRCH
        raise OSError(number, f"seccomp: {os.strerror(number)}")


@lru_cache(maxsize=1)
def program(machine: str, pid: int) -> bytes:
    """Return the filter for the process with the id `pid`.

    The last one is cached: with a process namespace, every guest has the same id.
    """
    column = list(MACHINES).index(machine)
    code = [_op(_LOAD, _ARCHITECTURE), *_unless(MACHINES[machine], KILL), _op(_LOAD, _NUMBER)]
    if machine == "x86_64":
        code += [_op(_JUMP_AT_LEAST, _X32, 0, 1), _op(_RETURN, KILL)]
    for table, action in ((ALLOWED, ALLOW), (FATAL, KILL)):
        for number in _numbers(table, column):
            code += _when(number, action)
    for name, check in _checks(pid).items():
        checked = CHECKED[name][column]
        assert checked is not None
        code += [_op(_JUMP_EQUAL, checked, 0, len(check)), *check]
    code.append(_op(_RETURN, REFUSE))
    return b"".join(code)


def _checks(pid: int) -> dict[str, list[bytes]]:
    """Return, for each CHECKED call, the code that checks its arguments and returns a verdict."""
    refuse = _op(_RETURN, REFUSE)
    return {
        # `clone` can start a thread of this process, and nothing else. The flags of `clone3` are
        # in memory that a filter cannot read, so it fails with ENOSYS: the C library uses `clone`.
        "clone": [
            _argument(0),
            _op(_AND, _THREAD | _NEVER),
            *_when(_THREAD, ALLOW),
            refuse,
        ],
        "clone3": [_op(_RETURN, ABSENT)],
        # `statx` tells more times and numbers than the older calls, which the C library uses.
        "statx": [_op(_RETURN, ABSENT)],
        "tgkill": [_argument(0), *_when(pid, ALLOW), refuse],
        # `prlimit64` can read the limits of this process: the pid must be 0, and the pointer to
        # the new limits (two halves of 32 bits) must be null.
        "prlimit64": [
            _argument(0),
            *_unless(0, REFUSE),
            _argument(2),
            *_unless(0, REFUSE),
            _argument(2, high=True),
            *_when(0, ALLOW),
            refuse,
        ],
        "fcntl": [_argument(1), *(op for value in _FCNTL for op in _when(value, ALLOW)), refuse],
        "ioctl": [_argument(1), *(op for value in _IOCTL for op in _when(value, ALLOW)), refuse],
    }


def _machine() -> str | None:
    machine = os.uname().machine
    known = sys.platform == "linux" and sys.maxsize > 1 << 32 and machine in MACHINES
    return machine if known else None


def _numbers(table: Table, column: int) -> list[int]:
    return [number for both in table.values() if (number := both[column]) is not None]


def _op(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)


def _argument(position: int, *, high: bool = False) -> bytes:
    return _op(_LOAD, 16 + 8 * position + (4 if high else 0))


def _when(value: int, action: int) -> tuple[bytes, bytes]:
    return _op(_JUMP_EQUAL, value, 0, 1), _op(_RETURN, action)


def _unless(value: int, action: int) -> tuple[bytes, bytes]:
    return _op(_JUMP_EQUAL, value, 1, 0), _op(_RETURN, action)
