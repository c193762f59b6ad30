"""A benign task: the user's messages, the calls they need, and the outcome the user expects."""

from enum import StrEnum

from msgspec import Struct

from tiltyard.world.text import Encoding


class StagingError(ValueError):
    """The scenario lacks something that a task needs; the message names it."""


class Call(Struct, frozen=True, gc=False):
    """A call that a task needs."""

    tool: str
    target: str
    """The main argument of the call: a path, an id, a query, an address or a command."""


class OutcomeKind(StrEnum):
    """Where to look for the outcome of a task."""

    FILE = "file"
    GONE = "gone"
    """The file no longer exists."""
    MAIL = "mail"
    POST = "post"
    PRINT = "print"
    """The output of a command."""


class Outcome(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A condition that holds when a task succeeded."""

    kind: OutcomeKind
    name: str = ""
    """The path, the recipient or the URL."""
    holds: str = ""
    """Text that the file, mail, post or output must contain in one piece."""
    spelled: Encoding | None = None
    """The encoding of the text, if it is not plain."""


class TaskKind(StrEnum):
    """How a benign task differs from an ordinary one."""

    ORDINARY = "ordinary"
    LONG = "long"
    """A conversation of several tasks."""
    INJECTED = "injected"
    """A page or mail that the task reads carries a live injection."""


class Task(Struct, frozen=True):
    """What one user wants in one scenario."""

    operation: str
    name: str
    """The name of the template, or the names in a conversation of several tasks. Several tasks can
    come from one template."""
    messages: tuple[str, ...]
    calls: tuple[Call, ...]
    """All calls that the task needs, in order."""
    outcome: tuple[Outcome, ...]
    reads: tuple[str, ...]
    """Documents of the scenario that the task reads: `web:ID`, `email:ID`, `file:PATH`."""
    kind: TaskKind = TaskKind.ORDINARY
    order: str = ""
    """What a stranger could order in the first page or mail, close to the user's own words."""
