"""The self-jail: a process gives up, for good, all that a stranger's code could misuse.

It runs inside the guest, after the trusted imports and before the submission is loaded. Only the
standard library, and little of it: everything here is part of what has to be trusted. It knows
nothing of the judge, the wire or the game.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tiltyard.isolation.confinement import landlock, seccomp
from tiltyard.isolation.confinement.landlock import landlock_abi
from tiltyard.isolation.confinement.seccomp import has_seccomp

__all__ = ["LAYERS", "ConfinementError", "confine", "has_seccomp", "in_force", "landlock_abi"]

LAYERS: Final = (
    "environment",
    "descriptors",
    "uid",
    "no-capabilities",
    "no-new-privileges",
    "death-signal",
    "not-dumpable",
    "limits",
    "landlock",
    "seccomp",
)
"""In the order in which they are put on: each may need what a later one takes away."""

_SET_DEATH_SIGNAL: Final = 1
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVILEGES: Final = 38
_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_CAPABILITIES_VERSION: Final = 0x20080522
_CLONE_THREAD: Final = 0x00010000
_STACK: Final = 8 << 20

_libc: Final = ctypes.CDLL(None, use_errno=True)
_layers: tuple[str, ...] = ()


class ConfinementError(RuntimeError):
    """A layer cannot be had, so nothing of a stranger's may run here."""


def in_force() -> tuple[str, ...]:
    """Return the layers that `confine` put on in this process."""
    return _layers


def confine(  # noqa: PLR0913 - one parameter for each thing that is left to the guest
    limits: Mapping[str, int],
    readable: Sequence[str],
    writable: str | None,
    uid: int | None,
    *,
    keep: Sequence[int] = (),
    parent: int | None = None,
    without: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    """Confine this process and return the names of the layers in force.

    `limits` has the fields of `Limits`; `uid` is the user to become, for a guest started by root;
    `keep` are the descriptors to leave open beside the first three; `parent` is the process to die
    with, where it can be named. `without` leaves layers out: tests show with it what each stops.
    """
    global _layers  # noqa: PLW0603 - the state it records is the process's, and is for good
    steps: dict[str, Callable[[], None]] = {
        "environment": os.environ.clear,
        "descriptors": lambda: _close_all_but(keep),
        "uid": lambda: _become(uid),
        "no-capabilities": _give_up_capabilities,
        "no-new-privileges": lambda: _prctl(_SET_NO_NEW_PRIVILEGES, 1),
        # After the change of user, which would clear both.
        "death-signal": lambda: _die_with(parent),
        "not-dumpable": lambda: _prctl(_SET_DUMPABLE, 0),
        "limits": lambda: _limit(limits),
        "landlock": lambda: landlock.restrict(readable, writable),
        "seccomp": lambda: seccomp.install(os.getpid()),
    }
    wanted = [name for name in LAYERS if name not in without and (name != "uid" or uid is not None)]
    _check_alone()
    for name in wanted:
        try:
            steps[name]()
        except (OSError, ValueError) as error:
            raise ConfinementError(f"the jail's layer {name!r} cannot be had: {error}") from error
    _check_closed(wanted)
    _layers = tuple(wanted)
    return _layers


def _check_alone() -> None:
    """Refuse to go on beside other threads: Landlock would leave them as they are."""
    # The kernel refuses this, and does nothing, exactly when the process has other threads.
    if _libc.unshare(_CLONE_THREAD):
        raise ConfinementError("a trusted import has started a thread; the jail cannot hold it")


def _check_closed(layers: Sequence[str]) -> None:
    """See with our own eyes that the two layers which matter most are there."""
    if "landlock" in layers:
        _expect(errno.EACCES, lambda: os.open("/", os.O_RDONLY), "landlock")
    if "seccomp" in layers:
        _expect(errno.EPERM, lambda: os.getpriority(os.PRIO_PROCESS, 0), "seccomp")


def _expect(number: int, attempt: Callable[[], object], layer: str) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno == number:
            return
        raise ConfinementError(f"the jail's layer {layer!r} answers oddly: {error}") from error
    raise ConfinementError(f"the jail's layer {layer!r} was put on and does not hold")


def _close_all_but(keep: Sequence[int]) -> None:
    after = 3
    for descriptor in sorted(keep):
        os.closerange(after, descriptor)
        after = max(after, descriptor + 1)
    os.closerange(after, 1 << 20)


def _become(uid: int | None) -> None:
    assert uid is not None
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (uid, uid, uid) or os.getgroups():
        raise OSError(errno.EPERM, "still somebody else")


def _give_up_capabilities() -> None:
    """Give up what the nursery needs, and a guest does not."""
    _prctl(_AMBIENT, _CLEAR_ALL)
    if _libc.capset(struct.pack("=Ii", _CAPABILITIES_VERSION, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _die_with(parent: int | None) -> None:
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        raise OSError(errno.ESRCH, "the judge is gone already")


def _limit(limits: Mapping[str, int]) -> None:
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_STACK, _STACK),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_AS, limits["address_space"]),
    ):
        # Soft and hard alike, so that the kernel kills and does not warn; never more than we have.
        _, hard = resource.getrlimit(kind)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
