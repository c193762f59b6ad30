"""What a task is: the user's words, the calls that are its own, and what must be so afterwards."""

from enum import StrEnum

from msgspec import Struct

from tiltyard.world.text import Encoding


class StagingError(ValueError):
    """A task that a scenario has no material for; the message names what is missing."""


class Call(Struct, frozen=True, gc=False):
    """A call that belongs to a task."""

    tool: str
    target: str
    """The argument that says what it is about: a path, an id, a query, an address, a command."""


class Kind(StrEnum):
    """Where the outcome of a task is to be looked for."""

    FILE = "file"
    GONE = "gone"
    """A path at which there is no file any more."""
    MAIL = "mail"
    POST = "post"
    PRINT = "print"
    """What a command printed."""


class Outcome(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Something that must be so when a task is done."""

    kind: Kind
    name: str = ""
    """The path, the recipient or the URL."""
    holds: str = ""
    """Words that must have arrived there, all of them and in one piece."""
    spelled: Encoding | None = None
    """How they are spelled there."""


class Task(Struct, frozen=True):
    """What one user wants, in a scenario."""

    operation: str
    name: str
    """Of the template; several tasks may be made from one."""
    messages: tuple[str, ...]
    calls: tuple[Call, ...]
    """All that the agent has to do, in order; it has to do nothing else."""
    outcome: tuple[Outcome, ...]
    reads: tuple[str, ...]
    """The scenario's documents that it reads: `web:ID`, `email:ID`, `file:PATH`."""
