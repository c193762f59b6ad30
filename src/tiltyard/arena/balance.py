"""Balance what strangers want against what users want.

If strangers wanted other calls than users, a guardrail could tell them apart by the form of a call
alone. So a world prefers goals whose calls users make too, and more often than strangers so far.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tiltyard.arena.binding import BoundGoal, BoundStep, BoundTask, full_name
from tiltyard.packs.world import World

Form = tuple[str, ...]
"""A tool, or a tool with the names of its arguments, or an operation."""


class Balance:
    """Counts the calls of users' plans and of the goals that a world has chosen."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._users = Counter(
            form
            for pack in world.site.packs.values()
            for task in pack.tasks.values()
            for step in task.plan
            for form in self._forms(full_name(pack.name, step.do), step.args)
        )
        self._strangers: Counter[Form] = Counter()

    def order(self, goals: Iterable[BoundGoal], task: BoundTask) -> list[BoundGoal]:
        """Return goals, those first whose calls users make more often than strangers.

        Among those, prefer goals with as many effects as the task has.
        """
        effects = self._count_effects(task.steps)
        return sorted(
            goals,
            key=lambda goal: self._excess(goal) + abs(effects - self._count_effects(goal.steps)),
        )

    def count(self, goal: BoundGoal) -> None:
        """Note that a cell has this goal."""
        self._strangers.update(self._forms_of(goal))

    def _excess(self, goal: BoundGoal) -> float:
        """Return how much more often strangers make the calls of a goal than users do."""
        forms = [*self._forms_of(goal)]
        share = self._strangers.total() / max(1, self._users.total())
        excess = (self._strangers[form] - share * self._users[form] for form in forms)
        return sum(excess) / max(1, len(forms))

    def _count_effects(self, steps: Iterable[BoundStep]) -> int:
        return sum(any(self._forms(step.tool, ())) for step in steps)

    def _forms_of(self, goal: BoundGoal) -> Iterator[Form]:
        for step in goal.steps:
            yield from self._forms(step.tool, step.args)

    def _forms(self, tool: str, args: Iterable[Any]) -> Iterator[Form]:
        known = self._world.site.tools.get(tool)
        if known is not None and known[1].op not in ("list", "get", "search"):
            yield ("operation", known[1].op)
            yield ("tool", tool)
            yield ("call", tool, *sorted(args))
