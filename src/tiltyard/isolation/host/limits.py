"""Isolation levels, and the limits of a guest."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

MIB: Final = 1 << 20


class Level(StrEnum):
    """How well this machine can isolate a submission."""

    A = "A"
    """Namespaces and the self-jail. Only results at this level are comparable."""
    B = "B"
    """The self-jail alone, with no writable directory."""
    C = "C"
    """No Landlock or no seccomp: submissions do not run."""


class Limits(Struct, frozen=True, kw_only=True):
    """The resources of one guest, in bytes, seconds and counts."""

    address_space: int = 512 * MIB
    cpu_seconds: int = 2520
    file_size: int = 8 * MIB
    open_files: int = 64
    processes: int = 16
    """Includes threads. A guest cannot start a process."""
    output: int = MIB
    """How much of a guest's output is kept: its beginning and its end."""


class JailError(RuntimeError):
    """The jail cannot be set up. The message says what to do."""


class NoJailError(Exception):
    """Submissions do not run, because this machine has no jail."""
