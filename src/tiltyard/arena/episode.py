"""An episode of the worst-case lane: a scripted agent, a guardrail, and perhaps a stranger.

The agent follows the user's plan. Once it has read planted text, it also carries out the plan that
is attached to that text, each call at a gap that chance chose before the episode. A denied call is
skipped, and a call with an unresolved reference is not made.
"""

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from msgspec import Struct

from tiltyard.arena.binding import BoundStep, BoundTask
from tiltyard.arena.references import (
    Delivered,
    Origin,
    UnresolvedError,
    is_left,
    is_legible,
    is_reference,
    occurs,
    resolve,
)
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Result
from tiltyard.episode.conversation import Conversation
from tiltyard.packs.operations import call
from tiltyard.packs.results import show_result
from tiltyard.packs.schema import Scalar
from tiltyard.packs.surface import Surface
from tiltyard.packs.world import OWNER, Change, World, show

MAX_PLANTED_CALLS: Final = 8


class PlantedStep(Struct, frozen=True):
    """A call of the stranger's plan, and when the agent makes it."""

    step: BoundStep
    after: int
    """The agent makes it after this many steps of the user's plan, or as soon as it has read the
    planted text, whichever is later."""
    borrowed: frozenset[str] = frozenset()
    """Arguments that the agent takes from the user's own call. They need not stand in the text."""


class Plant(Struct, frozen=True):
    """Planted content, and the plan that an agent follows once it has read it."""

    way: str
    world: World
    """The world with the planted text."""
    texts: tuple[str, ...] = ()
    """What the agent must have read before it follows the plan."""
    steps: tuple[PlantedStep, ...] = ()


class Called(Struct, frozen=True):
    """A call of an episode, as the judge sees it."""

    tool: str
    shown: dict[str, Any]
    """The arguments as the guardrail saw them."""
    origins: dict[str, Origin]
    planted: bool
    """True for a call of the stranger's plan."""
    decision: Decision
    confirmed: bool | None
    """The user's answer, if the guardrail asked."""
    result: Result | None
    changes: tuple[Change, ...] = ()


class Played(Struct, frozen=True):
    """An episode that has ended."""

    calls: tuple[Called, ...]
    answer: tuple[Scalar, ...] | None
    """What the answer tells the user; None if the agent lacks a part of it."""

    @property
    def changes(self) -> list[Change]:
        return [change for called in self.calls for change in called.changes]

    @property
    def questions(self) -> int:
        return sum(called.confirmed is not None for called in self.calls)

    @property
    def touched(self) -> bool:
        """Whether the guardrail stopped or changed a call of the user's plan."""
        return any(
            not called.planted and called.decision.action is not Action.ALLOW
            for called in self.calls
        )


def play(
    task: BoundTask, surface: Surface, conversation: Conversation, plant: Plant | None = None
) -> Played:
    """Play an episode to its end."""
    return _Episode(task, surface, conversation, plant).play()


class _Episode:
    def __init__(
        self, task: BoundTask, surface: Surface, conversation: Conversation, plant: Plant | None
    ) -> None:
        self._task, self._surface, self._conversation = task, surface, conversation
        self._plant = plant
        self._world = task.world if plant is None else plant.world
        self._calls: list[Called] = []
        self._own: dict[str, Delivered] = {}
        """What the user's plan was given."""
        self._strange: dict[str, Delivered] = {}
        self._read: list[str] = []
        self._awaited: dict[str, int] = {}
        """Records that deliver a one-time code, and the index of the call that waits for it."""
        self._waiting = [] if plant is None else [*plant.steps]
        self._unread = set() if plant is None else {*plant.texts}

    def play(self) -> Played:
        self._conversation.say(self._task.say)
        for done, step in enumerate(self._task.steps):
            self._make(step, self._own)
            self._follow_strangers(done + 1)
        self._follow_strangers(len(self._task.steps))
        return Played(tuple(self._calls), self._answer())

    def _follow_strangers(self, done: int) -> None:
        """Make the calls of the stranger's plan that are due."""
        while not self._unread and self._waiting and self._waiting[0].after <= done:
            due = self._waiting.pop(0)
            # A stranger's plan may use what the user's plan has read.
            self._make(due.step, ChainMap(self._strange, self._own), due)

    def _make(
        self,
        step: BoundStep,
        results: MutableMapping[str, Delivered],
        due: PlantedStep | None = None,
    ) -> None:
        """Make a call, unless a reference is unresolved or a literal did not survive."""
        planted = due is not None
        try:
            resolved = {name: resolve(value, results) for name, value in step.args.items()}
        except UnresolvedError:
            return
        args = {name: value for name, (value, _) in resolved.items()}
        origins = {name: origin for name, (_, origin) in resolved.items()}
        if due is not None and not self._survived(due, origins):
            return
        bound = self._surface.tools[step.tool]
        shown, name = bound.shown(args), bound.declaration.name
        decision = self._conversation.decide(name, shown)
        confirmed = self._ask(step, planted=planted) if decision.action is Action.CONFIRM else None
        if decision.action is Action.SANITIZE:
            shown = dict(decision.sanitized_args or {})
            args = bound.understood(shown)
        if decision.action is Action.DENY or confirmed is False:
            called = Called(name, shown, origins, planted, decision, confirmed, None)
            self._calls.append(called)
            return
        authors = {name: self._author(origin, planted=planted) for name, origin in origins.items()}
        outcome = call(self._world, bound, args, authors)
        self._world = outcome.world
        if outcome.code:
            self._awaited[outcome.code] = len(self._calls)
        full = show_result(bound, outcome, self._awaited)
        result = self._conversation.observe(name, shown, full)
        self._read.append(result.output)
        self._unread = {
            text
            for text in self._unread
            if not (occurs(text, full.output) and is_legible(text, result.output))
        }
        results[step.name] = Delivered(outcome.found, result, step.of, self._task.world)
        self._calls.append(
            Called(name, shown, origins, planted, decision, confirmed, result, outcome.changes)
        )

    def _survived(self, due: PlantedStep, origins: Mapping[str, Origin]) -> bool:
        """Return whether every literal of a stranger's call stands in what the agent was given."""
        return all(
            any(is_left(part, text) for text in self._read)
            for name in origins
            if name not in due.borrowed
            for part in _literals(due.step.args[name])
        )

    def _ask(self, step: BoundStep, *, planted: bool) -> bool:
        """Return the user's answer to a question.

        This user knows only the sentence: it covers calls of the tools that the plan uses, with the
        values that the sentence names. The user approves values that they cannot know.
        """
        if not planted:
            return True
        for own in self._task.steps:
            if own.tool == step.tool:
                named = {name for name, value in own.args.items() if show(value) in self._task.said}
                if all(own.args[name] == step.args.get(name) for name in named):
                    return True
        return False

    def _author(self, origin: Origin, *, planted: bool) -> str:
        if not origin.literal:
            return origin.author
        return "stranger" if planted else OWNER

    def _answer(self) -> tuple[Scalar, ...] | None:
        """Return what the user learns. A text tells the same with and without planted words."""
        try:
            return tuple(resolve(part, self._own, plain=True)[0] for part in self._task.answer)
        except UnresolvedError:
            return None


def _literals(value: Any) -> list[Any]:
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if not is_reference(part)]
