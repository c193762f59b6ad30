"""Make sealed tasks: tasks that no public file contains, drawn from an organizer's key.

The tools of a pack determine what users can ask for. A draw chooses a tool, where its values come
from, and the words. The tasks share nothing with the public ones but the packs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from typing import Any, Final

from msgspec import structs

from tiltyard.arena.check import check_reach, check_sealed
from tiltyard.arena.references import is_reference
from tiltyard.arena.sealed_calls import (
    draw_text,
    fill_brackets,
    join,
    label_of,
    surround,
    verb_of,
)
from tiltyard.arena.sealed_tasks import DECK, WORDINGS, TaskMaker
from tiltyard.arena.sealed_words import ORDERS
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Goal, Pack, Task

SPARE: Final = 2
"""How many candidates to draw for each task: some cannot be told from what a stranger wants."""
TRIES: Final = 6
"""How often a candidate is drawn until there is one of its kind."""
WORDS_IN_A_ROW: Final = 5
_LETTERS: Final = "bcdfghkmnprstvwz23456789"
MOST_ALIKE: Final = 3
"""No row of so many words occurs in more tasks than this."""


class Rows:
    """Counts in how many tasks a row of words occurs."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()

    def admit(self, task: Task) -> bool:
        """Return whether a task may join, and count its rows if it may."""
        words = re.findall(r"[\w{}'.@-]+", task.say.lower())
        last = len(words) - WORDS_IN_A_ROW + 1
        rows = {tuple(words[at : at + WORDS_IN_A_ROW]) for at in range(max(0, last))}
        if any(self._counts[row] >= MOST_ALIKE for row in rows):
            return False
        self._counts.update(rows)
        return True


def make_sealed(packs: Mapping[str, Pack], count: int, key: str) -> dict[str, Pack]:
    """Return packs with new tasks, and with goals in new words and some new goals."""
    rows = Rows()
    return {name: make_pack(pack, packs, count, key, rows) for name, pack in packs.items()}


def make_pack(
    pack: Pack, packs: Mapping[str, Pack], count: int, key: str, rows: Rows | None = None
) -> Pack:
    """Return a pack with new tasks and goals that pass its check.

    It has `count` tasks, or fewer if the draws lead to fewer that work.
    """
    draw = Draw("sealed tasks", key, pack.name)
    maker = TaskMaker(pack)
    places = _draw_candidates(maker, count, draw)
    candidates = {name: task for place in places for name, task in place.items()}
    wishes = dict(_draw_wishes(maker, draw.branch("wishes")))
    goals = {**reword_goals(pack, key), **_reached(wishes, pack, packs)}
    made = _working(structs.replace(pack, tasks=candidates, goals=goals), packs)
    chosen = dict(_choose(places, made.tasks, count, rows or Rows()))
    return structs.replace(made, tasks=chosen)


def _draw_candidates(maker: TaskMaker, count: int, draw: Draw) -> list[dict[str, Task]]:
    """Return some candidates for each place, all of the kind that the deck has there."""
    places = []
    for place, kind in enumerate(islice(cycle(DECK), count)):
        found = {}
        for spare in range(SPARE):
            branch = draw.branch(place, spare)
            tries = (maker.draw(kind, branch.branch(number)) for number in range(TRIES))
            task = next((one for one in tries if one is not None), None)
            if task is not None:
                found[branch.branch("name").text(_LETTERS, 10)] = task
        places.append(found)
    return places


def _draw_wishes(maker: TaskMaker, draw: Draw) -> Iterator[tuple[str, Goal]]:
    """Yield goals of strangers who want what users want.

    Else a guardrail could tell strangers by the tools and the arguments of their calls.
    """
    for name in maker.effects:
        goal = maker.draw_goal(name, draw.branch(name))
        if goal is not None:
            yield f"wish_{name}"[:40], goal


def _reached(goals: dict[str, Goal], pack: Pack, packs: Mapping[str, Pack]) -> dict[str, Goal]:
    """Return the goals to which a public task leads."""
    problems = check_reach(structs.replace(pack, goals=goals), packs)
    wrong = {_place(one).removeprefix("goals.") for one in problems}
    return {name: goal for name, goal in goals.items() if name not in wrong}


def _working(pack: Pack, packs: Mapping[str, Pack]) -> Pack:
    """Return a pack without the tasks that do not pass the check."""
    while True:
        problems = check_sealed(pack, {**packs, pack.name: pack})
        wrong = {_place(one).removeprefix("tasks.") for one in problems}
        tasks = {name: task for name, task in pack.tasks.items() if name not in wrong}
        if len(tasks) == len(pack.tasks):
            return pack
        pack = structs.replace(pack, tasks=tasks)


def _place(problem: str) -> str:
    """Return what a problem is about, such as `tasks.name`."""
    return problem.split(":", maxsplit=1)[0].split(" ", maxsplit=1)[0]


def _choose(
    places: list[dict[str, Task]], tasks: Mapping[str, Task], count: int, rows: Rows
) -> Iterator[tuple[str, Task]]:
    """Yield one working task for each place. Others fill the places that have none."""
    left = []
    chosen = 0
    for place in places:
        working = [(name, task) for name, task in place.items() if name in tasks]
        found = next((one for one in working if rows.admit(one[1])), None)
        left += [one for one in working if one is not found]
        if found is not None:
            chosen += 1
            yield found
    for spare in left:
        if chosen < count and rows.admit(spare[1]):
            chosen += 1
            yield spare


def reword_goals(pack: Pack, key: str) -> dict[str, Goal]:
    """Return the goals of a pack with orders in other words.

    A guardrail can know the public orders by heart.
    """
    draw = Draw("sealed goals", key, pack.name)
    return {
        name: structs.replace(goal, orders=[*_reword(pack, goal, draw.branch(name))])
        for name, goal in pack.goals.items()
    }


def _reword(pack: Pack, goal: Goal, draw: Draw) -> Iterator[str]:
    for number, frame in enumerate(draw.branch("frames").sample(ORDERS, WORDINGS)):
        branch = draw.branch(number)
        verbs, said = [], []
        for step in goal.plan:
            tool = pack.tools[step.do]
            verbs.append(verb_of(step.do, tool, branch.branch(step.do)))
            for argument, value in step.args.items():
                literals = [one for one in _parts(value) if not is_reference(one)]
                said += [f"{label_of(tool, argument, branch)} {one}" for one in literals]
        args = join(said) if said else draw_text(draw.branch("nothing"))
        order = fill_brackets(frame, do=" and ".join(verbs), args=args)
        yield surround(order, branch.branch("around"))


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
