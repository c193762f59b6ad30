"""Long conversations: several tasks of one user, one after the other.

At least one of them comes from the extended suite. Whoever allows only the tasks of the seven
operations turns other users away.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from msgspec import Struct

from tiltyard.benign.documents import Preferences
from tiltyard.benign.task_maker import Claims, TaskMaker
from tiltyard.benign.tasks import Call, StagingError, Task, TaskKind
from tiltyard.benign.templates import Operation, TaskTemplate, TaskTemplates
from tiltyard.foundation.draw import Draw

MIN_MESSAGES: Final = 4
MAX_MESSAGES: Final = 12
LONGEST: Final = 32
"""A candidate has at most this many messages too."""
LENGTHS: Final = ((MIN_MESSAGES, MAX_MESSAGES), (13, 24), (25, LONGEST))
_LONGER: Final = 4
"""One in four conversations is longer than `MAX_MESSAGES`."""

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

    The other tasks come from both suites of `book`. One of them can be a relay, with others between
    its messages. No two tasks use the same new file or note, nor the same document if the scenario
    has enough of them.
    """
    operation, template = own
    length = shape.length
    if length is None:
        length = _draw_length(draw.branch("length"))
    room = length - template.length
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
    stages = [[*_stages(task, template)] for task, (_, template) in zip(tasks, parts, strict=True)]
    said = _interleave(stages, draw.branch("between"), own_last=not own_first)
    return Task(
        operation.name,
        " + ".join(task.name for task in tasks),
        tuple(message for stage in said for message in stage.messages),
        tuple(call for stage in said for call in stage.calls),
        tuple(outcome for task in tasks for outcome in task.outcome),
        tuple(dict.fromkeys(document for task in tasks for document in task.reads)),
        TaskKind.LONG,
        tasks[0 if own_first else -1].order,
    )


def _draw_length(draw: Draw) -> int:
    usual, *longer = LENGTHS
    fewest, most = draw.choice(longer) if draw.chance(1, _LONGER) else usual
    return fewest + draw.below(most - fewest + 1)


class _Stage(Struct, frozen=True):
    """Messages that no other task interrupts, and their calls."""

    messages: tuple[str, ...]
    calls: tuple[Call, ...]


def _stages(task: Task, template: TaskTemplate) -> Iterator[_Stage]:
    """Yield one stage for each message of a relay, and one for any other task."""
    if not template.is_relay:
        yield _Stage(task.messages, task.calls)
        return
    bounds = pairwise(accumulate(template.stages, initial=0))
    for message, (first, last) in zip(task.messages, bounds, strict=True):
        yield _Stage((message,), task.calls[first:last])


def _interleave(tasks: Sequence[Sequence[_Stage]], draw: Draw, *, own_last: bool) -> list[_Stage]:
    """Put the later stages of each task at drawn places among the tasks after it."""
    line: list[_Stage] = []
    for first, *later in reversed(tasks):
        # Nothing comes after the conversation's own last task.
        end = len(line) - 1 if own_last and line else len(line)
        places = sorted(draw.below(end + 1) for _ in later)
        for place, stage in reversed([*zip(places, later, strict=True)]):
            line.insert(place, stage)
        line.insert(0, first)
    return line


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
        if not (task.publishes or task.is_relay or task.own_only) and (task.is_plain or not local)
    ]
    chosen: list[Part] = []
    if not (local or template.is_relay) and draw.chance(1, 2):
        fitting = [part for part in book.relays() if part[1].length <= room]
        chosen = draw.sample(fitting, min(len(fitting), 1))
        room -= sum(task.length for _, task in chosen)
    while room:
        among = extended if not chosen or draw.chance(1, 2) else options
        fitting = [part for part in among if part[1].length <= room]
        if not fitting:
            raise StagingError(f"there are too few tasks for {room} more messages")
        part = draw.choice(fitting)
        among.remove(part)
        chosen.append(part)
        room -= part[1].length
    return draw.shuffled(chosen)
