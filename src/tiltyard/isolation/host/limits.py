"""How far a guest is held, and how much it may use."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

MIB: Final = 1 << 20


class Level(StrEnum):
    """What this machine can put around a stranger's code."""

    A = "A"
    """Namespaces and the self-jail. The only level whose results are comparable."""
    B = "B"
    """The self-jail alone, with nothing writable."""
    C = "C"
    """Neither Landlock nor seccomp: a stranger's code is refused."""


class Limits(Struct, frozen=True, kw_only=True):
    """What one guest may use, in bytes, seconds and counts."""

    address_space: int = 512 * MIB
    cpu_seconds: int = 2520
    file_size: int = 8 * MIB
    open_files: int = 64
    processes: int = 16
    """Threads count too; a guest can start no process."""
    output: int = MIB
    """What is kept of what a guest prints: the beginning and the end."""


class JailError(RuntimeError):
    """The jail cannot be had as it was asked for. The message says what to do."""


class NoJailError(Exception):
    """No jail is available on this machine, so strangers' code does not run."""
