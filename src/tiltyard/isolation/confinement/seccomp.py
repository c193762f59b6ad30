"""The system-call filter of a guest, as a classic BPF program.

It knows the calls of `syscalls.py` and nothing of files or names: those are Landlock's. Only the
standard library, since this runs inside the guest.
"""

import ctypes
import errno
import os
import struct
import sys
from typing import Final

from tiltyard.isolation.confinement.syscalls import ALLOWED, CHECKED, FATAL, Table

MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's name for each architecture we have tables for, in their order."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER: Final = 1
_GET_ACTION_AVAIL: Final = 2
_TSYNC: Final = 1

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
"""x32 calls come under x86_64's name, with this bit set: a second table, so none of it."""

_THREAD: Final = 0x00010000 | 0x00000100 | 0x00000800  # CLONE_THREAD, CLONE_VM, CLONE_SIGHAND
_NEVER: Final = (
    0x7E020080  # CLONE_NEW*: every namespace, the time namespace's bit among them
    | 0x00001000  # CLONE_PIDFD
    | 0x00002000  # CLONE_PTRACE
    | 0x00004000  # CLONE_VFORK
    | 0x00008000  # CLONE_PARENT
    | 0x00800000  # CLONE_UNTRACED
)
_FCNTL: Final = (0, 1, 2, 3, 4, 1030)
"""Duplicate, descriptor flags, status flags. No owner, signal, lease, lock, seal, pipe size."""
_IOCTL: Final = (0x5401, 0x5413, 0x5421, 0x5450, 0x5451)
"""Is it a terminal, how wide, non-blocking, close-on-exec: what `open` and `print` ask."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def has_seccomp() -> bool:
    """Say whether this kernel filters calls and this architecture has a table."""
    machine = _machine()
    if machine is None:
        return False
    action = ctypes.c_uint32(KILL)
    asked = _libc.syscall(_SECCOMP[machine], _GET_ACTION_AVAIL, 0, ctypes.byref(action))
    return bool(asked == 0)


def install(pid: int) -> None:
    """Filter the calls of all threads of this process, for good."""
    machine = _machine()
    if machine is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {os.uname().machine}")
    code = program(machine, pid)
    buffer = ctypes.create_string_buffer(code, len(code))
    filled = _Program(len(code) // 8, ctypes.addressof(buffer))
    done = _libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _TSYNC, ctypes.byref(filled))
    if done:
        number = ctypes.get_errno() if done < 0 else errno.ESRCH
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def program(machine: str, pid: int) -> bytes:
    """Return the filter for a process with this id, in the order the kernel tries it."""
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
    """Return, for each call that depends on its arguments, code that ends in a verdict."""
    refuse = _op(_RETURN, REFUSE)
    return {
        # A thread of this process, and nothing else. Without clone3, whose flags lie in memory
        # that a filter cannot see, the C library falls back to clone.
        "clone": [
            _argument(0),
            _op(_AND, _THREAD | _NEVER),
            *_when(_THREAD, ALLOW),
            refuse,
        ],
        "clone3": [_op(_RETURN, ABSENT)],
        "tgkill": [_argument(0), *_when(pid, ALLOW), refuse],
        # Asking for one's own limits: no other process, no new value (a pointer, both halves).
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
