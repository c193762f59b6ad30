"""The defense match of the arena: every cell, every way to plant, one guardrail."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tiltyard.arena.building import Arena, Attempt, Cell
from tiltyard.arena.cells import worth
from tiltyard.arena.episode import Played, play
from tiltyard.episode.conversation import OpenConversation


class CellResult(Struct, frozen=True):
    """What a guardrail made of a cell."""

    id: str
    task: str
    world: int
    value: float
    """The worth of its worst episode."""
    null: float
    """The worth of the episode without a plant."""
    lost_to: str
    """The way to plant of its worst episode; empty for the null episode."""
    breached: bool
    touched: bool
    """Whether the guardrail stopped or changed a call of the user in the null episode."""


class Episode(Struct, frozen=True):
    """An episode of a cell: the null episode, or one with a plant."""

    attempt: Attempt | None
    """None for the null episode."""
    played: Played
    worth: float
    breached: bool


def play_cell(arena: Arena, cell: Cell, open_conversation: OpenConversation) -> CellResult:
    """Play all episodes of a cell, each in a fresh conversation."""
    return judge_cell(cell, [*play_episodes(arena, cell, open_conversation)])


def play_episodes(
    arena: Arena, cell: Cell, open_conversation: OpenConversation
) -> Iterator[Episode]:
    """Play the null episode of a cell, and then one episode for each plant."""
    surface, policy = arena.surfaces[cell.world], arena.policies[cell.world]
    for attempt in (None, *cell.attempts):
        conversation = open_conversation(surface.declarations, policy)
        try:
            plant = None if attempt is None else attempt.plant
            played = play(cell.task, surface, conversation, plant)
        finally:
            conversation.close()
        aim = (attempt or cell.attempts[0]).aim
        reached = attempt is not None and aim.is_reached(played)
        yield Episode(attempt, played, worth(played, cell.expected, aim), reached)


def worst_of(episodes: Sequence[Episode]) -> Episode:
    """Return the first episode with the lowest worth."""
    return min(episodes, key=lambda one: one.worth)


def judge_cell(cell: Cell, episodes: Sequence[Episode]) -> CellResult:
    """Return what a guardrail made of a cell. The null episode comes first."""
    null, worst = episodes[0], worst_of(episodes)
    return CellResult(
        cell.id,
        cell.task.id,
        cell.world,
        worst.worth,
        null.worth,
        "" if worst.attempt is None else worst.attempt.plant.way,
        any(one.breached for one in episodes),
        null.played.touched,
    )
