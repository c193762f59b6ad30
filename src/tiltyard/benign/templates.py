"""The templates of benign tasks: the types of `suite.toml`, `extended.toml` and `words.toml`.

`suite` decides which templates to draw and turns a template into a task. Slots work as in the
templates of scenarios (`tiltyard.world.templates`) and draw from the same vocabulary.
"""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.benign.documents import EMAIL, WEB
from tiltyard.benign.tasks import Outcome

_READ_WITH: Final = {"web.open": WEB, "email.read": EMAIL}
_LISTINGS: Final = frozenset(("web.search", "web.open", "email.list", "email.read"))
_PUBLISHING: Final = ("http.post", "curl", "{stranger}")
_OWN_FILES: Final = frozenset(("file", "target", "readme", "report"))


class TaskTemplate(Struct, frozen=True, forbid_unknown_fields=True):
    """A task with slots in place of names and words."""

    name: str
    messages: tuple[str, ...]
    calls: tuple[str, ...]
    """Tool and target, separated by a space."""
    outcome: tuple[Outcome, ...]
    role: str = ""
    """A suite draws one template of each role before it uses a role again."""
    documents: dict[str, str] = {}
    """Slots for documents, each with the kind of document; `documents.py` lists the kinds."""
    define: dict[str, str] = {}
    """Additional slots, filled before the messages, calls and outcomes."""
    reads: tuple[str, ...] = ()
    """Documents that the task reads without a call that names them."""
    lookalike: bool = False
    """Use documents that look like an injection but are harmless."""
    own_only: bool = False
    """Leave the task out of the long conversations of other operations, because it posts something
    or writes to a stranger."""

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(call.partition(" ")[0] for call in self.calls)

    @property
    def publishes(self) -> bool:
        """Tell whether the task posts something, or writes to a stranger."""
        calls = " ".join(self.calls)
        return any(sign in calls for sign in _PUBLISHING) or "letter" in self.documents.values()

    @property
    def is_plain(self) -> bool:
        """Tell whether the task is about the user's own ordinary files, without loaded words."""
        words = " ".join((*self.messages, *self.define.values()))
        kinds = set(self.documents.values())
        return "loaded" not in words and kinds <= _OWN_FILES and self.tools.isdisjoint(_LISTINGS)

    @property
    def media(self) -> frozenset[str]:
        """Return what the task reads from strangers: pages, mails, both or nothing."""
        return frozenset(medium for tool, medium in _READ_WITH.items() if tool in self.tools)


class Operation(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    task: tuple[TaskTemplate, ...]
    plain: bool = False
    """Use only documents without a word that looks secret, look-alikes included, if there are
    enough of them."""

    @property
    def is_local(self) -> bool:
        """Tell whether no task of this operation reads a page or a mail."""
        return not any(template.media for template in self.task)


class TaskTemplates(Struct, frozen=True):
    """All templates and words of the benign tasks."""

    version: int
    """Changes whenever the same key draws other tasks."""
    secret_looking: tuple[str, ...]
    """Words that a careless rule takes for a secret, in lower case."""
    words: dict[str, tuple[str, ...]]
    suite: tuple[Operation, ...]
    extended: tuple[Operation, ...]


class _Words(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    secret_looking: tuple[str, ...]
    words: dict[str, tuple[str, ...]]


class _Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    operation: tuple[Operation, ...]


@cache
def load_task_templates() -> TaskTemplates:
    folder = files("tiltyard.benign")
    words = msgspec.toml.decode((folder / "words.toml").read_bytes(), type=_Words)
    suite, extended = (
        msgspec.toml.decode((folder / name).read_bytes(), type=_Tasks).operation
        for name in ("suite.toml", "extended.toml")
    )
    return TaskTemplates(words.version, words.secret_looking, words.words, suite, extended)
