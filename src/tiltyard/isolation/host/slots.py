"""Which user a guest becomes: one that no other guest on this machine is at the same time.

Root's guests drop to users of their own. Two guests that were one user could signal each other, and
would share a limit on processes. A slot is held by a name that only one process can have, and that
the kernel frees when its holder ends.
"""

import secrets
import socket
from collections.abc import Iterable
from typing import Final

from tiltyard.isolation.host.limits import JailError

SLOTS: Final = 4096


class Slot:
    """A number that nobody else has until it is released."""

    def __init__(self, number: int, name: socket.socket) -> None:
        self.number = number
        self._name = name

    def release(self) -> None:
        self._name.close()


def take_slot() -> Slot:
    """Return a free slot: any, so that it tells nothing about those before it."""
    first = secrets.randbelow(SLOTS)
    slot = take("guest", ((first + offset) % SLOTS for offset in range(SLOTS)))
    if slot is None:
        raise JailError(f"all {SLOTS} slots for guests are taken")
    return slot


def take(kind: str, numbers: Iterable[int]) -> Slot | None:
    """Return the first of these numbers that nobody on this machine has."""
    for number in numbers:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            name.bind(f"\0tiltyard-{kind}-{number}")
        except OSError:
            name.close()
            continue
        return Slot(number, name)
    return None
