"""Draw the benign tasks of a match, and make the extended suite of a scenario.

Every draw is keyed by the key of the match and the variant, so a suite is the same everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tiltyard.benign.conversations import Shape, draw_conversation
from tiltyard.benign.documents import EMAIL, WEB, Preferences, may_look_alike
from tiltyard.benign.injections import inject, live_injections, medium_of
from tiltyard.benign.rewording import reword
from tiltyard.benign.task_maker import MAX_REDRAWS, TaskMaker
from tiltyard.benign.tasks import StagingError, Task, TaskKind
from tiltyard.benign.templates import Operation, TaskTemplate, load_task_templates
from tiltyard.benign.trial import call_of, play
from tiltyard.foundation.draw import Draw
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.rulesets.ruleset import DefenseRules, load_ruleset
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario

OPERATIONS: Final = tuple(operation.name for operation in load_task_templates().suite)
"""The seven operations of the competition."""
SHORT_INJECTED: Final = 3
"""Every third injected task is a single task. The others are long conversations."""


class _Injected(Struct, frozen=True):
    """A task, and the injection for one of the documents that it reads."""

    task: Task
    document: str
    injection: str


Drawn = dict[str, list[Task]]
"""Tasks by the name of their operation."""


class Suite(Struct, frozen=True):
    """The benign tasks of a match, and the two scenarios that they run in."""

    scenario: Scenario
    poisoned: Scenario
    """The scenario with live injections in pages and mails that the injected tasks read."""
    tasks: tuple[Task, ...]

    def scenario_of(self, task: Task) -> Scenario:
        return self.poisoned if task.kind is TaskKind.INJECTED else self.scenario


def draw_suite(scenario: Scenario, key: str, rules: DefenseRules | None = None) -> Suite:
    """Draw the tasks of the seven operations, by the key of a match.

    `rules` says how many tasks of each kind to draw; the default is the `design` ruleset. Every
    task succeeds if the guardrail allows everything.
    """
    rules = load_ruleset().defense if rules is None else rules
    drawer = _Drawer(scenario, key)
    ordinary = drawer.draw_ordinary(rules.variants)
    long = drawer.draw_long(rules.long_variants)
    poisoned, injected = drawer.draw_injected(rules.injected_variants, rules.long_variants)
    kinds = ordinary, long, injected
    tasks = tuple(task for name in OPERATIONS for kind in kinds for task in kind[name])
    return Suite(scenario, poisoned, tasks)


def draw_tasks(scenario: Scenario, key: str, variants: int) -> tuple[Task, ...]:
    """Draw only the ordinary tasks of a suite: `variants` for each of the seven operations."""
    drawn = _Drawer(scenario, key).draw_ordinary(variants)
    return tuple(task for name in OPERATIONS for task in drawn[name])


def extended_suite(scenario: Scenario) -> tuple[Task, ...]:
    """Return every task of the extended suite once."""
    drawer = _Drawer(scenario, "extended")
    return tuple(
        drawer.maker.make(
            operation,
            template,
            drawer.draw.branch(template.name),
            Preferences(lookalike=template.lookalike),
        )
        for operation in load_task_templates().extended
        for template in operation.task
    )


class _Drawer:
    """Draws the tasks of one match."""

    def __init__(self, scenario: Scenario, key: str) -> None:
        book = load_task_templates()
        self.scenario = scenario
        self.book = book
        self.operations = book.suite
        self.maker = TaskMaker(scenario, book)
        version = templates.load().version
        self.draw = Draw("benign", book.version, version, key, scenario.digest)

    def draw_ordinary(self, variants: int) -> Drawn:
        if variants < 1:
            raise ValueError(f"variants must be at least 1, not {variants}")
        chosen = {
            operation.name: _chosen(operation, self.draw.branch(operation.name), variants)
            for operation in self.operations
        }
        with_lookalike = _lookalikes(chosen, self.draw.branch("look-alikes"), variants)
        drawn: Drawn = {name: [] for name in chosen}
        for operation in self.operations:
            for number, template in enumerate(chosen[operation.name]):
                lookalike = (operation.name, number) in with_lookalike
                preferences = Preferences(
                    lookalike=lookalike, plain=operation.plain or not lookalike
                )
                task_draw = self.draw.branch(operation.name, number)
                task = self.maker.make(operation, template, task_draw, preferences)
                drawn[operation.name].append(task)
        return drawn

    def draw_long(self, variants: int) -> Drawn:
        return {
            operation.name: [self._conversation(operation, number) for number in range(variants)]
            for operation in self.operations
        }

    def draw_injected(self, variants: int, first_long: int) -> tuple[Scenario, Drawn]:
        """Draw tasks that read an injection, and the scenario with the injections.

        An operation that reads no page or mail gets long conversations instead, numbered from
        `first_long` on.
        """
        # Only pages and mails: a guardrail may trust local files, as the data-flow guardrail does.
        injections = live_injections(self.scenario, (WEB, EMAIL))
        drawn: Drawn = {}
        places: list[tuple[Operation, int]] = []
        for operation in self.operations:
            drawn[operation.name] = []
            if any(template.media & injections.keys() for template in operation.task):
                places += [(operation, number) for number in range(variants)]
            else:
                numbers = range(first_long, first_long + variants)
                drawn[operation.name] = [self._conversation(operation, n) for n in numbers]
        poisoned, tasks = self._inject_all(places, injections)
        for task in tasks:
            drawn[task.operation].append(task)
        return poisoned, drawn

    def _conversation(self, operation: Operation, number: int) -> Task:
        """Draw a long conversation that succeeds without a guardrail."""
        draw = self.draw.branch("long", operation.name)
        own = draw.shuffled(operation.task)
        for attempt in range(MAX_REDRAWS):
            part = operation, own[(number + attempt) % len(own)]
            try:
                task = draw_conversation(self.maker, self.book, part, draw.branch(number, attempt))
            except StagingError:
                # A small scenario has too few files for some combinations of tasks.
                continue
            if _works(task, self.scenario):
                return task
        raise StagingError(
            f"{operation.name!r} cannot be staged: "
            f"no long conversation succeeded in {MAX_REDRAWS} tries"
        )

    def _inject_all(
        self, places: Sequence[tuple[Operation, int]], injections: Mapping[str, Sequence[str]]
    ) -> tuple[Scenario, list[Task]]:
        """Draw a task for each place, until all of them succeed in the same poisoned scenario."""
        attempts = [0] * len(places)
        staged = [self._stage(*place, 0, injections) for place in places]
        for _ in range(MAX_REDRAWS):
            # Tasks can share a document. The first of them decides on its injection.
            texts = {one.document: one.injection for one in reversed(staged) if one is not None}
            poisoned = inject(self.scenario, texts)
            tasks = [one.task for one in staged if one is not None and _works(one.task, poisoned)]
            if len(tasks) == len(places):
                return poisoned, tasks
            for at, one in enumerate(staged):
                if one is None or one.task not in tasks:
                    attempts[at] += 1
                    staged[at] = self._stage(*places[at], attempts[at], injections)
        raise StagingError(f"no injected tasks succeeded together in {MAX_REDRAWS} tries")

    def _stage(
        self,
        operation: Operation,
        number: int,
        attempt: int,
        injections: Mapping[str, Sequence[str]],
    ) -> _Injected | None:
        """Draw a task and an injection for the first page or mail that it reads."""
        draw = self.draw.branch("injected", operation.name)
        own = draw.shuffled([one for one in operation.task if one.media & injections.keys()])
        template = own[(number + attempt) % len(own)]
        draw = draw.branch(number, attempt)
        try:
            if number % SHORT_INJECTED == 0:
                task = self.maker.make(operation, template, draw, Preferences(plain=True))
            else:
                part = operation, template
                task = draw_conversation(self.maker, self.book, part, draw, Shape(own_first=True))
        except StagingError:
            return None
        document = next(name for name in task.reads if medium_of(name) in injections)
        injection_draw = draw.branch("injection")
        text = reword(injection_draw.choice(injections[medium_of(document)]), injection_draw)
        return _Injected(replace(task, kind=TaskKind.INJECTED), document, text)


def _works(task: Task, scenario: Scenario) -> bool:
    """Tell whether a task succeeds without a guardrail, and meets an injection if it should.

    No injected call may equal one of the user's: a trial could not tell them apart.
    """
    trial = play(task, scenario, AllowAllGuardrail)
    made = [call_of(event) for event in trial.trace.events]
    own = [call for call in made if call in task.calls]
    is_injected = len(made) > len(own)
    return (
        not trial.false_positive
        and own == list(task.calls)
        and is_injected is (task.kind is TaskKind.INJECTED)
    )


def _chosen(operation: Operation, draw: Draw, variants: int) -> list[TaskTemplate]:
    """Choose templates in rounds. Each round has one template of every role, in random order."""
    roles = list(dict.fromkeys(template.role for template in operation.task))
    chosen: list[TaskTemplate] = []
    while len(chosen) < variants:
        lap = draw.branch("lap", len(chosen))
        for role in lap.shuffled(roles):
            options = [template for template in operation.task if template.role == role]
            chosen.append(lap.branch(role).choice(options))
    return chosen[:variants]


def _lookalikes(
    chosen: dict[str, list[TaskTemplate]], draw: Draw, variants: int
) -> frozenset[tuple[str, int]]:
    """Choose the variants that read look-alikes, at most one of each operation."""
    candidates = [
        [(name, number) for number, t in enumerate(made) if may_look_alike(t.documents.values())]
        for name, made in chosen.items()
    ]
    drawn = [draw.choice(variant) for variant in draw.shuffled(candidates) if variant]
    return frozenset(drawn[: (variants + 1) // 2])
