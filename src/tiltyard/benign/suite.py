"""Draw the benign tasks of a match, and make the extended suite of a scenario.

Every draw is keyed by the key of the match and the variant, so a suite is the same everywhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from tiltyard.benign.documents import EMAIL, FILE, WEB, DocumentPicker, Preferences, may_look_alike
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task
from tiltyard.benign.templates import (
    Operation,
    TaskTemplate,
    TaskTemplates,
    load_task_templates,
)
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Filler
from tiltyard.world.urls import read_address

MAX_REDRAWS: Final = 200
OPERATIONS: Final = tuple(operation.name for operation in load_task_templates().suite)
"""The seven operations of the competition."""

_OPENED_WITH: Final = {"web.open": WEB, "email.read": EMAIL, "fs.read": FILE}


def draw_suite(scenario: Scenario, key: str, variants: int | None = None) -> tuple[Task, ...]:
    """Draw `variants` tasks for each of the seven operations, by the key of a match.

    The default is the number of variants in the `design` ruleset.
    """
    variants = load_ruleset().defense.variants if variants is None else variants
    if variants < 1:
        raise ValueError(f"variants must be at least 1, not {variants}")
    book = load_task_templates()
    maker = _TaskMaker(scenario, book)
    draw = Draw("benign", book.version, templates.load().version, key, scenario.digest)
    chosen = {
        operation.name: _chosen(operation, draw.branch(operation.name), variants)
        for operation in book.suite
    }
    with_lookalike = _lookalikes(chosen, draw.branch("look-alikes"), variants)
    tasks: list[Task] = []
    for operation in book.suite:
        for number, template in enumerate(chosen[operation.name]):
            lookalike = (operation.name, number) in with_lookalike
            preferences = Preferences(lookalike=lookalike, plain=operation.plain or not lookalike)
            task_draw = draw.branch(operation.name, number)
            tasks.append(maker.make(operation, template, task_draw, preferences))
    return tuple(tasks)


def extended_suite(scenario: Scenario) -> tuple[Task, ...]:
    """Return every task of the extended suite once."""
    book = load_task_templates()
    maker = _TaskMaker(scenario, book)
    draw = Draw("benign", book.version, templates.load().version, "extended", scenario.digest)
    return tuple(
        maker.make(
            operation,
            template,
            draw.branch(template.name),
            Preferences(lookalike=template.lookalike),
        )
        for operation in book.extended
        for template in operation.task
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


class _TaskMaker:
    """Turns templates into tasks for one scenario."""

    def __init__(self, scenario: Scenario, book: TaskTemplates) -> None:
        self.picker = DocumentPicker(scenario, book.secret_looking)
        self.words = {**templates.load().words, **book.words}
        self.site = scenario.world.site

    def make(
        self, operation: Operation, template: TaskTemplate, draw: Draw, preferences: Preferences
    ) -> Task:
        """Fill the slots of `template` from the scenario and the vocabulary."""
        slots = Filler(draw.branch("words"), self.words)
        try:
            self._set_documents(slots, template, draw, preferences)
            self._set_names(slots, template)
        except StagingError as error:
            place = f"{operation.name!r} ({template.name})"
            raise StagingError(f"{place} cannot be staged: {error}") from None
        for name, words in template.define.items():
            slots.set(name, slots.fill(words))
        calls = [slots.fill(call).partition(" ") for call in template.calls]
        task_calls = tuple(Call(tool, target) for tool, _, target in calls)
        return Task(
            operation.name,
            template.name,
            tuple(slots.fill(message) for message in template.messages),
            task_calls,
            tuple(_filled(outcome, slots) for outcome in template.outcome),
            tuple(self._reads(task_calls, [slots.fill(name) for name in template.reads])),
        )

    def _set_documents(
        self, slots: Filler, template: TaskTemplate, draw: Draw, preferences: Preferences
    ) -> None:
        taken: frozenset[str] = frozenset()
        for slot, kind in template.documents.items():
            document_draw = draw.branch("document", slot)
            found = self.picker.pick(kind, document_draw, replace(preferences, taken=taken))
            taken |= {found.key}
            for suffix, value in found.slots().items():
                slots.set(slot + suffix, value)
            opening = Filler(document_draw.branch("opening"), self.words)
            opening.set("name", found.called or found.id)
            phrases = self.words[f"open_{found.medium}"]
            slots.set(f"{slot}_open", opening.fill(opening.draw.choice(phrases)))

    def _set_names(self, slots: Filler, template: TaskTemplate) -> None:
        """Set the slots for new files, URLs and people."""
        is_internal = self.site.is_internal_address
        slots.set("owner", self.site.owner)
        new = _drawn(slots, "{scratch}", self._is_new, "free path")
        slots.set("new", new)
        other = _drawn(
            slots, "{scratch}", lambda path: path != new and self._is_new(path), "free path"
        )
        slots.set("new2", other)
        slots.set("url", _drawn(slots, "{url}", self.picker.is_external, "external host"))
        slots.set(
            "stranger",
            _drawn(slots, "{stranger}", lambda to: not is_internal(to), "external domain"),
        )
        if not any("{colleague}" in m or "{intranet}" in m for m in template.messages):
            return
        domain = min(self.site.internal_domains, default="")
        if not domain:
            raise StagingError("the scenario has no internal domain")
        pattern = f"{{lower first}}.{{lower last}}@{domain}"
        slots.set("colleague", _drawn(slots, pattern, self._is_colleague, "internal address"))
        slots.set("intranet", slots.fill(f"https://{{hostnoun}}.{domain}/{{urlpath}}"))

    def _is_new(self, path: str) -> bool:
        # A guardrail's rule against `curl` must not match a file name such as `curlew.txt`.
        return self.picker.is_free(path) and "curl" not in path

    def _is_colleague(self, address: str) -> bool:
        return read_address(address) not in (None, self.site.owner)

    def _reads(self, calls: tuple[Call, ...], others: list[str]) -> Iterator[str]:
        """Yield the documents of the scenario that a task reads, each once."""
        found: dict[str, None] = dict.fromkeys(others)
        scenario, world = self.picker.scenario, self.picker.world
        for call in calls:
            medium = _OPENED_WITH.get(call.tool)
            name = call.target
            if medium == WEB:
                page = world.web.find(name)
                name = "" if page is None else page.id
            if medium is not None and name and (medium != FILE or name in scenario.files):
                found[f"{medium}:{name}"] = None
        yield from found


def _filled(outcome: Outcome, slots: Filler) -> Outcome:
    return Outcome(
        outcome.kind, slots.fill(outcome.name), slots.fill(outcome.holds), outcome.spelled
    )


def _drawn(slots: Filler, template: str, fits: Callable[[str], bool], needed: str) -> str:
    """Fill `template` until the result fits the scenario."""
    for number in range(MAX_REDRAWS):
        # A new filler each time, so that slots do not keep words that did not fit.
        value = Filler(slots.draw.branch(template, number), slots.words).fill(template)
        if fits(value):
            return value
    raise StagingError(f"found no {needed} after {MAX_REDRAWS} tries")
