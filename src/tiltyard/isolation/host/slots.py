"""Slots: numbers for guests that run at the same time on this machine.

Root's guests run as different users, one for each slot. Two guests of one user could signal each
other, and would share a limit on processes. A slot is held by the name of an abstract socket, which
only one process can have. The kernel frees the name when the process ends.
"""

import secrets
import socket
from collections.abc import Iterable
from typing import Final

from tiltyard.isolation.host.limits import JailError

SLOTS: Final = 4096


class Slot:
    """A number that no other process on this machine has until `release`."""

    def __init__(self, number: int, name: socket.socket) -> None:
        self.number = number
        self._name = name

    def release(self) -> None:
        self._name.close()


def take_slot() -> Slot:
    """Return a random free slot, so that its number reveals nothing about earlier guests."""
    first = secrets.randbelow(SLOTS)
    slot = take("guest", ((first + offset) % SLOTS for offset in range(SLOTS)))
    if slot is None:
        raise JailError(f"all {SLOTS} slots for guests are taken: wait until other matches end")
    return slot


def take(kind: str, numbers: Iterable[int]) -> Slot | None:
    """Take the first of these numbers that no other process on this machine has."""
    for number in numbers:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            name.bind(f"\0tiltyard-{kind}-{number}")
        except OSError:
            name.close()
            continue
        return Slot(number, name)
    return None
