"""Slots: numbers for guests that run at the same time on this machine.

Root's guests run as different users, one for each slot. Two guests of one user could signal each
other, and would share a limit on processes. A slot is a locked file in a directory that only this
user can enter, so another user cannot take the slots away. The kernel frees the lock when the
process ends.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

from tiltyard.isolation.host.limits import JailError

SLOTS: Final = 4096
_MAX_NAMED: Final = 5
_PID_BYTES: Final = 20


class Slot:
    """A number that no other process of this user has until `release`."""

    def __init__(self, number: int, lock: FileIO | None = None) -> None:
        self.number = number
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()


def take_slot() -> Slot:
    """Return a random free slot, so that its number reveals nothing about earlier guests."""
    first = secrets.randbelow(SLOTS)
    slot = take("guest", ((first + offset) % SLOTS for offset in range(SLOTS)))
    if slot is not None:
        return slot
    if guests_are_users():
        raise JailError(_why_none_is_free())
    return Slot(first)


def guests_are_users() -> bool:
    """Return whether guests run as users of their own. Others do not need different numbers."""
    return os.geteuid() == 0


def take(kind: str, numbers: Iterable[int]) -> Slot | None:
    """Take the first of these numbers that no other process of this user has.

    Return None if there is none, or if this user has no directory of their own.
    """
    with _open_place() as (_, place):
        if place is None:
            return None
        for number in numbers:
            lock = _lock(f"{kind}-{number}", place)
            if lock is not None:
                return Slot(number, lock)
    return None


def _lock(name: str, place: int) -> FileIO | None:
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=place)
    except OSError:
        return None
    file = FileIO(descriptor, "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Always the same length: emptying a file first costs more than everything else here.
        file.write(str(os.getpid()).encode().ljust(_PID_BYTES))
    except OSError:
        file.close()
        return None
    return file


def places() -> list[Path]:
    """Return where the slots of this user can be, the best place first.

    No variable of the environment counts, so all processes of a user find the same place.
    """
    user = os.geteuid()
    shared = [Path(f"/tmp/tiltyard-{user}"), Path(f"/dev/shm/tiltyard-{user}")]  # noqa: S108
    own = Path("/run/tiltyard") if user == 0 else Path(f"/run/user/{user}/tiltyard")
    return [own, *shared]


@contextmanager
def _open_place() -> Iterator[tuple[Path | None, int | None]]:
    """Open the first place that belongs to this user alone; yield None if there is none."""
    for path in places():
        place = _open_private(path)
        if place is not None:
            try:
                yield path, place
            finally:
                os.close(place)
            return
    yield None, None


def _open_private(path: Path) -> int | None:
    """Make a directory and open it. Return None if it belongs to another user or is open to one."""
    with suppress(OSError):
        path.mkdir(mode=0o700)
    try:
        place = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    found = os.fstat(place)
    if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077:
        return place
    os.close(place)
    return None


def _why_none_is_free() -> str:
    with _open_place() as (path, place):
        if place is None:
            return (
                "no directory for the slots of guests: make one of these a directory of root's "
                f"with mode 0700: {', '.join(map(str, places()))}"
            )
        holders = sorted(_holders(place))
    if not holders:
        return f"no slot for a guest can be locked in {path}: is its disk full, or read-only?"
    named = ", ".join(map(str, holders[:_MAX_NAMED]))
    more = f" and {len(holders) - _MAX_NAMED} more" if len(holders) > _MAX_NAMED else ""
    return (
        f"all {SLOTS} slots for guests in {path} are taken by the processes {named}{more}: wait "
        "until their matches end, or end them"
    )


def _holders(place: int) -> set[int]:
    """Return the processes that took slots, as far as they wrote it down."""
    found: set[int] = set()
    for number in range(SLOTS):
        with suppress(OSError, ValueError):
            descriptor = os.open(f"guest-{number}", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=place)
            with FileIO(descriptor) as file:
                found.add(int(file.read(_PID_BYTES)))
    return found
