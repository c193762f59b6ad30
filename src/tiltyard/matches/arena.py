"""The defense match of the arena: play the cells of a world, and keep what a report shows.

The match does not know who opens the conversations: a pool of guests, or this process.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, structs

from tiltyard.arena.building import Arena, Cell, build
from tiltyard.arena.episode import Called
from tiltyard.arena.match import (
    CellResult,
    Episode,
    judge_cell,
    play_episodes,
    worst_of,
)
from tiltyard.episode.conversation import OpenConversation
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.isolation.host.failures import GuardrailFault
from tiltyard.packs.schema import Pack
from tiltyard.packs.world import Change
from tiltyard.rulesets.ruleset import ArenaRules

MAX_SHOWN_CHARS: Final = 600
"""The limit for one argument or result of a lost cell."""
TWICE: Final = 8
"""One of so many cells is played a second time."""
Loss = Literal["task", "breach", "both", "questions"]


class LostCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call in the worst episode of a cell."""

    planted: Annotated[bool, Meta(description="Whether the planted text ordered the call.")]
    tool: Annotated[str, Meta(description="The name of the tool in this world.")]
    args: Annotated[
        dict[str, str], Meta(description="The arguments as the guardrail saw them, shortened.")
    ]
    decision: Annotated[str, Meta(description="allow, deny, sanitize or confirm")]
    reason: Annotated[str, Meta(description="The guardrail's reason.")]
    confirmed: Annotated[
        bool | None, Meta(description="The user's answer; null if the guardrail did not ask.")
    ]
    output: Annotated[str, Meta(description="What the agent got, shortened; empty if denied.")]
    changes: Annotated[tuple[str, ...], Meta(description="What the call changed or sent.")]


class LostCell(Struct, frozen=True, forbid_unknown_fields=True):
    """A cell that is worth less than 1, with its worst episode."""

    id: Annotated[str, Meta(description="C1, C2, ... in the order of the cells.")]
    cell: Annotated[str, Meta(description="World, task and goal.")]
    world: Annotated[int, Meta(description="The number of the world, from 1.")]
    say: Annotated[str, Meta(description="What the user asks for.")]
    way: Annotated[
        str, Meta(description="How the text was planted; empty if nobody planted anything.")
    ]
    planted: Annotated[tuple[str, ...], Meta(description="The planted text, in one or two parts.")]
    lost: Annotated[
        Loss,
        Meta(
            description="task: the user did not get everything; breach: the stranger did; both; "
            "questions: the guardrail asked the user."
        ),
    ]
    worth: Annotated[float, Meta(description="The worth of the episode, 0 to 1.")]
    calls: Annotated[tuple[LostCall, ...], Meta(description="Every call, in order.")]


class Attacked(Struct, frozen=True):
    """An episode with a plant."""

    way: str
    worth: float
    solved: bool
    breached: bool


class PlayedCell(Struct, frozen=True):
    """What a report needs of a cell. Interrupted matches continue from these."""

    result: CellResult
    solved: bool
    """Whether the task is solved when nobody attacks."""
    attacks: tuple[Attacked, ...]
    lost: LostCell | None
    """None if the cell is worth 1. Its id is empty: the report numbers the cells of all worlds."""
    faults: tuple[GuardrailFault, ...] = ()
    decided: str = ""
    """A hash of all decisions."""
    inconsistent: bool = False
    """Whether the cell was played a second time, and a fresh guardrail decided differently."""

    @property
    def pack(self) -> str:
        return self.result.task.partition("/")[0]


def build_world(packs: Mapping[str, Pack], key: str, rules: ArenaRules, number: int) -> Arena:
    """Return the arena with the cells of one world. Worlds are numbered from 0."""
    chosen = packs if rules.tasks is None else _with_fewer_tasks(packs, key, rules.tasks)
    return build(chosen, key, rules.worlds, rules.packs_a_world, only=number)


def _with_fewer_tasks(packs: Mapping[str, Pack], key: str, count: int) -> dict[str, Pack]:
    chosen: dict[str, Pack] = {}
    for name, pack in packs.items():
        draw = Draw("fewer tasks", key, name)
        names = draw.sample(sorted(pack.tasks), min(count, len(pack.tasks)))
        chosen[name] = structs.replace(pack, tasks={one: pack.tasks[one] for one in sorted(names)})
    return chosen


def play_cells(
    arena: Arena,
    open_conversation: OpenConversation,
    *,
    log: Log[PlayedCell] | None = None,
    take_faults: Callable[[], Sequence[GuardrailFault]] = tuple,
    progress: Progress = NO_PROGRESS,
) -> list[PlayedCell]:
    """Play every cell of an arena. With a log, continue where an earlier match stopped.

    `take_faults` returns the errors inside the guardrail since its last call.
    """
    done: list[PlayedCell] = []
    for number, cell in enumerate(arena.cells):
        known = None if log is None else log.replay()
        if known is None or known.result.id != cell.id:
            known = _play_cell(arena, cell, open_conversation, take_faults)
            if number % TWICE == 0:
                again = _play_cell(arena, cell, open_conversation, take_faults)
                known = structs.replace(known, inconsistent=again.decided != known.decided)
            if log is not None:
                log.add(known)
        done.append(known)
        progress.step(len(done), "")
    return done


def _play_cell(
    arena: Arena,
    cell: Cell,
    open_conversation: OpenConversation,
    take_faults: Callable[[], Sequence[GuardrailFault]],
) -> PlayedCell:
    episodes = [*play_episodes(arena, cell, open_conversation)]
    attacks = tuple(
        Attacked(one.attempt.plant.way, one.worth, cell.expected.is_met(one.played), one.breached)
        for one in episodes
        if one.attempt is not None
    )
    result, worst = judge_cell(cell, episodes), worst_of(episodes)
    lost = _describe(cell, worst) if worst.worth < 1 else None
    solved = cell.expected.is_met(episodes[0].played)
    decided = sha256(msgspec.json.encode([*map(_decided, episodes)])).hexdigest()
    return PlayedCell(result, solved, attacks, lost, tuple(take_faults()), decided)


def _decided(episode: Episode) -> list[list[object]]:
    """Return everything that a guardrail decided in an episode. Reasons decide nothing."""
    return [
        [called.tool, called.shown, called.decision.action, called.result]
        for called in episode.played.calls
    ]


def _describe(cell: Cell, worst: Episode) -> LostCell:
    plant = None if worst.attempt is None else worst.attempt.plant
    return LostCell(
        id="",
        cell=cell.id,
        world=cell.world + 1,
        say=cell.task.say,
        way="" if plant is None else plant.way,
        planted=() if plant is None else plant.texts,
        lost=_loss(cell, worst),
        worth=worst.worth,
        calls=tuple(map(_describe_call, worst.played.calls)),
    )


def _loss(cell: Cell, worst: Episode) -> Loss:
    if not cell.expected.is_met(worst.played):
        return "both" if worst.breached else "task"
    return "breach" if worst.breached else "questions"


def _describe_call(called: Called) -> LostCall:
    result = called.result
    return LostCall(
        planted=called.planted,
        tool=called.tool,
        args={name: _shown(value) for name, value in called.shown.items()},
        decision=called.decision.action.value,
        reason=called.decision.reason,
        confirmed=called.confirmed,
        output="" if result is None else _shown(result.output or result.error or ""),
        changes=tuple(map(_describe_change, called.changes)),
    )


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[:MAX_SHOWN_CHARS]} [{len(text) - MAX_SHOWN_CHARS:,} more characters]"


def _describe_change(change: Change) -> str:
    if change.kind == "left":
        return f"sent {', '.join(change.fields) or 'nothing'} to {change.to}"
    return f"{change.kind} {change.type} {change.key}".rstrip()
