"""Long conversations: several tasks of one user, one after the other.

At least one of them comes from the extended suite. Whoever allows only the tasks of the seven
operations turns other users away.
"""

from typing import Final

from msgspec import Struct

from tiltyard.benign.documents import Preferences
from tiltyard.benign.task_maker import Claims, TaskMaker
from tiltyard.benign.tasks import Task, TaskKind
from tiltyard.benign.templates import Operation, TaskTemplate, TaskTemplates
from tiltyard.foundation.draw import Draw

MIN_MESSAGES: Final = 4
MAX_MESSAGES: Final = 12

Part = tuple[Operation, TaskTemplate]


class Shape(Struct, frozen=True, kw_only=True):
    """How a conversation is arranged. What is None is drawn."""

    own_first: bool | None = None
    """Whether the conversation begins or ends with its own task."""
    length: int | None = None
    """The number of messages."""
    local: bool = False
    """Whether all other tasks leave pages and mails alone."""
    late_tool: str = ""
    """Tasks that call this tool come after the others."""
    avoided: frozenset[str] = frozenset()
    """Documents to avoid, if the scenario has enough others."""


def draw_conversation(
    maker: TaskMaker,
    book: TaskTemplates,
    own: Part,
    draw: Draw,
    shape: Shape = Shape(),  # noqa: B008 - a constant
) -> Task:
    """Draw a conversation that begins or ends with the task `own`.

    The other tasks come from both suites of `book`. No two tasks use the same new file or note, nor
    the same document if the scenario has enough of them.
    """
    operation, template = own
    length = shape.length
    if length is None:
        length = MIN_MESSAGES + draw.branch("length").below(MAX_MESSAGES - MIN_MESSAGES + 1)
    room = length - len(template.messages)
    # If the operation reads no page and no mail, its conversations read none either.
    local = operation.is_local or shape.local
    others = _choose_others(book, own, room, draw.branch("others"), local=local)
    others.sort(key=lambda part: shape.late_tool in part[1].tools)
    own_first = shape.own_first
    if own_first is None:
        own_first = draw.branch("place").chance(1, 2)
    parts = [own, *others] if own_first else [*others, own]
    claims = Claims(documents=set(shape.avoided))
    tasks = [
        maker.make(*part, draw.branch("part", number), _preferences(part), claims)
        for number, part in enumerate(parts)
    ]
    return Task(
        operation.name,
        " + ".join(task.name for task in tasks),
        tuple(message for task in tasks for message in task.messages),
        tuple(call for task in tasks for call in task.calls),
        tuple(outcome for task in tasks for outcome in task.outcome),
        tuple(dict.fromkeys(document for task in tasks for document in task.reads)),
        TaskKind.LONG,
    )


def _preferences(part: Part) -> Preferences:
    return Preferences(plain=True, lookalike=part[1].lookalike)


def _choose_others(
    book: TaskTemplates, own: Part, room: int, draw: Draw, *, local: bool
) -> list[Part]:
    """Choose different templates whose messages fill `room` exactly, extended ones first."""
    operation, template = own
    options = [
        (other, task)
        for other in book.suite
        if other.is_local or not local
        for task in other.task
        if task != template and (other == operation or not task.own_only)
    ]
    extended = [
        (other, task)
        for other in book.extended
        for task in other.task
        if not task.publishes and (task.is_plain or not local)
    ]
    chosen: list[Part] = []
    while room:
        among = extended if not chosen or draw.chance(1, 2) else options
        part = draw.choice([each for each in among if len(each[1].messages) <= room])
        among.remove(part)
        chosen.append(part)
        room -= len(part[1].messages)
    return draw.shuffled(chosen)
