"""Landlock: the files and directories that a guest can reach.

`restrict` takes away every right that both this kernel and this module know. It then allows reading
below `readable`, and writing below `writable`. This runs inside the guest, so it imports the
standard library only.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Sequence
from typing import Final

_libc: Final = ctypes.CDLL(None, use_errno=True)

# The same numbers on x86_64 and aarch64.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REMOVE: Final = 1 << 4 | 1 << 5
_MAKE_DIR: Final = 1 << 7
_MAKE_FILE: Final = 1 << 8
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14

_READ: Final = _READ_FILE | _READ_DIR
# No devices, sockets, pipes or links. No path is executable.
_WRITE: Final = _READ | _WRITE_FILE | _REMOVE | _MAKE_DIR | _MAKE_FILE | _REFER | _TRUNCATE

_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""The number of file rights that the kernel knows, by the Landlock version that added them."""
_TCP_FROM: Final = 4
_TCP: Final = 0b11  # bind, connect
_SCOPES_FROM: Final = 6
_SCOPES: Final = 0b11  # abstract unix sockets, signals


def landlock_abi() -> int:
    """Return the kernel's version of Landlock, or 0 if it has none."""
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, int(version))


def handled(abi: int) -> bytes:
    """Return the ruleset that takes away every right that Landlock of version `abi` knows."""
    files = (1 << max(bits for since, bits in _FILE_RIGHTS.items() if since <= abi)) - 1
    attributes = [files]
    if abi >= _TCP_FROM:
        attributes.append(_TCP)
    if abi >= _SCOPES_FROM:
        attributes.append(_SCOPES)
    return struct.pack(f"={len(attributes)}Q", *attributes)


def restrict(readable: Sequence[str], writable: str | None) -> None:
    """Confine this thread, and the threads it starts, to these paths."""
    abi = landlock_abi()
    if not abi:
        raise OSError("this kernel has no Landlock")
    attributes = handled(abi)
    (known,) = struct.unpack_from("=Q", attributes)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & known)
        if writable is not None:
            _allow(ruleset, writable, _WRITE & known)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _READ_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, beneath), 0)
    finally:
        os.close(beneath)


def _call(number: int, *arguments: object) -> int:
    done = int(_libc.syscall(number, *arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return done
