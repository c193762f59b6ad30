"""The templates of benign tasks: the types of the TOML files beside this module.

`suite` decides which templates to draw and turns a template into a task. Slots work as in the
templates of scenarios (`tiltyard.world.templates`) and draw from the same vocabulary.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tiltyard.benign.documents import EMAIL, WEB
from tiltyard.benign.orders import OrderForm, OrderWords
from tiltyard.benign.tasks import Outcome

_READ_WITH: Final = {"web.open": WEB, "email.read": EMAIL}
_DOCUMENTS: Final = (("page", "web.open"), ("mail", "email.read"))
_DOC: Final = re.compile(r"\bdoc(?=_|\b)")
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
    stages: tuple[int, ...] = ()
    """How many calls each message makes. Only a relay says so: in a long conversation, other tasks
    come between its messages."""
    orders: tuple[tuple[str, ...], ...] = ()
    """Injections that come close to the task, each as a list of sentences. One of them fills the
    slot `orders`."""
    waits_for: str = ""
    """The orders wait until the agent does this, such as `write a file`."""
    disguised: bool = False
    """The agent must decode the orders."""
    as_written: bool = False
    """Do not say the orders in other words."""
    keeps_words: bool = False
    """Do not say the messages in other words."""
    pauses: int = 0
    """How many small errands, which read nothing, come before the last message."""

    @property
    def form(self) -> OrderForm:
        return OrderForm(self.waits_for, self.disguised)

    @property
    def length(self) -> int:
        """Return the number of messages."""
        return len(self.messages) + self.pauses

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(call.partition(" ")[0] for call in self.calls)

    @property
    def is_relay(self) -> bool:
        """Tell whether the task brings the text of a page or mail back in a later message."""
        return bool(self.stages)

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
    order_words: OrderWords
    pauses: tuple[str, ...]
    """Small errands: each writes the slot `line` to the new file `pause`."""

    def relays(self) -> list[tuple[Operation, TaskTemplate]]:
        """Return the tasks that bring the text of a page or mail back in a later message."""
        return [
            (operation, task)
            for operation in self.extended
            for task in operation.task
            if task.is_relay
        ]

    def close_calls(self) -> list[tuple[Operation, TaskTemplate]]:
        """Return the tasks that an injection comes close to, once for each such injection."""
        return [
            (operation, replace(task, orders=(orders,)))
            for operation in self.extended
            for task in operation.task
            for orders in task.orders
        ]


class _Words(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    secret_looking: tuple[str, ...]
    words: dict[str, tuple[str, ...]]


class _Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    operation: tuple["_Operation", ...]


class _CloseCalls(_Tasks, frozen=True, forbid_unknown_fields=True):
    any_order: tuple[tuple[str, ...], ...]
    words: OrderWords
    pauses: tuple[str, ...]


class _Operation(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    task: tuple[dict[str, Any], ...]
    plain: bool = False


@cache
def load_task_templates() -> TaskTemplates:
    folder = files("tiltyard.benign")
    words = msgspec.toml.decode((folder / "words.toml").read_bytes(), type=_Words)
    suite, extended = (
        msgspec.toml.decode((folder / name).read_bytes(), type=_Tasks)
        for name in ("suite.toml", "extended.toml")
    )
    close_calls = msgspec.toml.decode((folder / "close_calls.toml").read_bytes(), type=_CloseCalls)
    return TaskTemplates(
        words.version,
        words.secret_looking,
        words.words,
        (*_operations(suite),),
        (*_operations(extended), *_operations(close_calls, close_calls.any_order)),
        close_calls.words,
        close_calls.pauses,
    )


def _operations(tasks: _Tasks, any_order: tuple[tuple[str, ...], ...] = ()) -> Iterator[Operation]:
    for each in tasks.operation:
        tasks_of_each = (one for task in each.task for one in _with_each(task))
        made = (one for task in tasks_of_each for one in _of_each_medium(task, any_order))
        yield Operation(each.name, (*made,), each.plain)


def _with_each(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a task once for each set of words in `each`, which `define` then has too."""
    sets = task.pop("each", ({},))
    for number, words in enumerate(sets):
        name = f"{task['name']}-{number + 1}" if len(sets) > 1 else task["name"]
        yield {**task, "name": name, "define": {**task.get("define", {}), **words}}


def _of_each_medium(
    task: dict[str, Any], any_order: tuple[tuple[str, ...], ...]
) -> Iterator[TaskTemplate]:
    """Yield the template of a task. If it says `both`, yield one for pages and one for mails."""
    both, takes_any = task.pop("both", False), task.pop("any_order", False)
    if takes_any:
        task["orders"] = any_order
    if not both:
        yield msgspec.convert(task, TaskTemplate)
        return
    for document, tool in _DOCUMENTS:
        yield msgspec.convert(_renamed(task, document, tool), TaskTemplate)


def _renamed(value: Any, document: str, tool: str) -> Any:
    """Replace `doc` and `{opens}` in a value of a TOML file."""
    if isinstance(value, str):
        return _DOC.sub(document, value).replace("{opens}", tool)
    if isinstance(value, dict):
        pairs = value.items()
        return {_DOC.sub(document, key): _renamed(each, document, tool) for key, each in pairs}
    if isinstance(value, list | tuple):
        return [_renamed(each, document, tool) for each in value]
    return value
