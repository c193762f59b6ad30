"""The self-jail: a process gives up, for good, everything that a submission could misuse.

`confine` runs inside the guest, after the trusted imports and before the submission is loaded. All
code here must be trusted, so there is little of it, and it imports the standard library only. It
knows nothing of the judge, the wire or the game.
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
from tiltyard.isolation.confinement.seccomp import has_seccomp, prepare

__all__ = [
    "LAYERS",
    "ConfinementError",
    "confine",
    "has_seccomp",
    "in_force",
    "landlock_abi",
    "prepare",
]

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
"""In the order in which `confine` applies them. A layer may need what a later one takes away."""

_SET_DEATH_SIGNAL: Final = 1
_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVILEGES: Final = 38
_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_CAPABILITIES_VERSION: Final = 0x20080522
_CLONE_THREAD: Final = 0x00010000
_STACK: Final = 8 << 20
_QUEUED_SIGNALS: Final = 64

_libc: Final = ctypes.CDLL(None, use_errno=True)
_layers: tuple[str, ...] = ()


class ConfinementError(RuntimeError):
    """A layer cannot be applied, so no submission may run in this process."""


def in_force() -> tuple[str, ...]:
    """Return the layers that `confine` has applied to this process."""
    return _layers


def confine(  # noqa: PLR0913 - one parameter for each thing that the guest keeps
    limits: Mapping[str, int],
    readable: Sequence[str],
    writable: str | None,
    uid: int | None,
    *,
    keep: Sequence[int] = (),
    parent: int | None = None,
    without: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    """Confine this process, and return the names of the layers in force.

    `limits` has the fields of `Limits`. `uid` is the user to become, for a guest that root starts.
    `keep` lists the descriptors to leave open, besides the first three. The guest dies with the
    process `parent`, if it is given. `without` leaves layers out: only for tests, which show what
    each layer stops.
    """
    global _layers  # noqa: PLW0603 - a process is confined once, for good
    steps: dict[str, Callable[[], None]] = {
        "environment": os.environ.clear,
        "descriptors": lambda: _close_all_but(keep),
        "uid": lambda: _become(uid),
        "no-capabilities": _give_up_capabilities,
        "no-new-privileges": lambda: _prctl(_SET_NO_NEW_PRIVILEGES, 1),
        # After `uid`: a change of user clears the death signal and the dumpable flag.
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
            raise ConfinementError(f"cannot apply the jail's layer {name!r}: {error}") from error
    _check_closed(wanted)
    _layers = tuple(wanted)
    return _layers


def _check_alone() -> None:
    """Raise if this process has other threads, which Landlock would not confine."""
    # This call changes nothing, and fails if and only if the process has other threads.
    if _libc.unshare(_CLONE_THREAD):
        raise ConfinementError(
            "a trusted import has started a thread, which Landlock does not confine"
        )


def _check_closed(layers: Sequence[str]) -> None:
    """Try what the two most important layers forbid."""
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
        raise ConfinementError(
            f"the jail's layer {layer!r} gives an unexpected error: {error}"
        ) from error
    raise ConfinementError(f"the jail's layer {layer!r} is applied, but has no effect")


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
        raise OSError(errno.EPERM, "the change of user had no effect")


def _give_up_capabilities() -> None:
    """Drop the capabilities, which only the fork server needs."""
    _prctl(_AMBIENT, _CLEAR_ALL)
    if _libc.capset(struct.pack("=Ii", _CAPABILITIES_VERSION, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _die_with(parent: int | None) -> None:
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        raise OSError(errno.ESRCH, "the judge has ended already")


def _limit(limits: Mapping[str, int]) -> None:
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        # The kernel counts queued signals by user, for all guests of an ordinary user together.
        (resource.RLIMIT_SIGPENDING, _QUEUED_SIGNALS),
        (resource.RLIMIT_STACK, _STACK),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_AS, limits["address_space"]),
    ):
        # Soft and hard limit are equal, so that the kernel kills without a warning first. A limit
        # is never raised.
        _, hard = resource.getrlimit(kind)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
