"""Long conversations: several tasks of one user, one after the other."""

from collections.abc import Sequence
from typing import Final

from tiltyard.benign.documents import Preferences
from tiltyard.benign.task_maker import Claims, TaskMaker
from tiltyard.benign.tasks import Task, TaskKind
from tiltyard.benign.templates import Operation, TaskTemplate
from tiltyard.foundation.draw import Draw

MIN_MESSAGES: Final = 4
MAX_MESSAGES: Final = 9

Part = tuple[Operation, TaskTemplate]


def draw_conversation(
    maker: TaskMaker,
    operations: Sequence[Operation],
    own: Part,
    draw: Draw,
    *,
    own_first: bool | None = None,
) -> Task:
    """Draw a conversation that begins or ends with the task `own`.

    The other tasks come from `operations`. No two tasks use the same new file or note, nor the
    same document if the scenario has enough of them. If `own_first` is None, draw the place.
    """
    operation, template = own
    length = MIN_MESSAGES + draw.branch("length").below(MAX_MESSAGES - MIN_MESSAGES + 1)
    room = length - len(template.messages)
    others = _choose_others(operations, own, room, draw.branch("others"))
    if own_first is None:
        own_first = draw.branch("place").chance(1, 2)
    parts = [own, *others] if own_first else [*others, own]
    claims = Claims()
    tasks = [
        maker.make(*part, draw.branch("part", number), Preferences(plain=True), claims)
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


def _choose_others(operations: Sequence[Operation], own: Part, room: int, draw: Draw) -> list[Part]:
    """Choose different templates whose messages fill `room` exactly."""
    operation, template = own
    options = [
        (other, task)
        for other in operations
        # If the operation reads no page and no mail, its conversations read none either.
        if other.is_local or not operation.is_local
        for task in other.task
        if task != template and (other == operation or not task.own_only)
    ]
    chosen: list[Part] = []
    while room:
        part = draw.choice([option for option in options if len(option[1].messages) <= room])
        options.remove(part)
        chosen.append(part)
        room -= len(part[1].messages)
    return chosen
