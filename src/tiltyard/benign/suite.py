"""Drawing tasks: the suite of a match, and the extended suite of a scenario.

Owns which templates are drawn, and how one becomes a task in a scenario. Every draw is keyed, by
the match's key and by the variant it is for, so that a suite is the same everywhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

from tiltyard.benign.documents import EMAIL, FILE, WEB, Choice, House, may_look_alike
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task
from tiltyard.benign.templates import Book, Operation, Template, load
from tiltyard.foundation.draw import Draw
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Filler
from tiltyard.world.urls import read_address

DEFAULT_VARIANTS: Final = 5
MAX_REDRAWS: Final = 200
OPERATIONS: Final = tuple(operation.name for operation in load().suite)
"""The competition's seven."""

_OPENED_WITH: Final = {"web.open": WEB, "email.read": EMAIL, "fs.read": FILE}


def draw_suite(scenario: Scenario, key: str, variants: int = DEFAULT_VARIANTS) -> tuple[Task, ...]:
    """Return so many variants of each of the seven operations, drawn by a match's key."""
    if variants < 1:
        raise ValueError(f"an operation has at least one variant, not {variants}")
    book = load()
    stage = _Stage(scenario, book)
    draw = Draw("benign", book.version, templates.load().version, key, scenario.digest)
    chosen = {
        operation.name: _chosen(operation, draw.branch(operation.name), variants)
        for operation in book.suite
    }
    strange = _lookalikes(chosen, draw.branch("look-alikes"), variants)
    tasks: list[Task] = []
    for operation in book.suite:
        for number, template in enumerate(chosen[operation.name]):
            lookalike = (operation.name, number) in strange
            choice = Choice(lookalike=lookalike, plain=operation.plain or not lookalike)
            drawn = draw.branch(operation.name, number)
            tasks.append(stage.task(operation, template, drawn, choice))
    return tuple(tasks)


def extended_suite(scenario: Scenario) -> tuple[Task, ...]:
    """Return every task of the extended suite once, for a scenario."""
    book = load()
    stage = _Stage(scenario, book)
    draw = Draw("benign", book.version, templates.load().version, "extended", scenario.digest)
    return tuple(
        stage.task(
            operation, template, draw.branch(template.name), Choice(lookalike=template.lookalike)
        )
        for operation in book.extended
        for template in operation.task
    )


def _chosen(operation: Operation, draw: Draw, variants: int) -> list[Template]:
    """Return an operation's templates: all roles in a drawn order, then all of them again."""
    roles = list(dict.fromkeys(template.role for template in operation.task))
    chosen: list[Template] = []
    while len(chosen) < variants:
        lap = draw.branch("lap", len(chosen))
        for role in lap.shuffled(roles):
            options = [template for template in operation.task if template.role == role]
            chosen.append(lap.branch(role).choice(options))
    return chosen[:variants]


def _lookalikes(
    chosen: dict[str, list[Template]], draw: Draw, variants: int
) -> frozenset[tuple[str, int]]:
    """Return which variants of which operations read look-alikes: about one trial in twelve."""
    able = [
        [(name, number) for number, t in enumerate(made) if may_look_alike(t.documents.values())]
        for name, made in chosen.items()
    ]
    first = [draw.choice(spots) for spots in draw.shuffled(able) if spots]
    return frozenset(first[: (variants + 1) // 2])


class _Stage:
    """One scenario, on which tasks are put."""

    def __init__(self, scenario: Scenario, book: Book) -> None:
        self.house = House(scenario, book.loaded)
        self.words = {**templates.load().words, **book.words}
        self.site = scenario.world.site

    def task(self, operation: Operation, template: Template, draw: Draw, choice: Choice) -> Task:
        """Fill in a template with what the scenario has."""
        slots = Filler(draw.branch("words"), self.words)
        try:
            self._set_documents(slots, template, draw, choice)
            self._set_names(slots, template)
        except StagingError as error:
            place = f"{operation.name!r} ({template.name})"
            raise StagingError(f"{place} cannot be staged: {error}") from None
        for name, words in template.define.items():
            slots.set(name, slots.fill(words))
        calls = [slots.fill(call).partition(" ") for call in template.calls]
        made = tuple(Call(tool, target) for tool, _, target in calls)
        return Task(
            operation.name,
            template.name,
            tuple(slots.fill(message) for message in template.messages),
            made,
            tuple(_filled(outcome, slots) for outcome in template.outcome),
            tuple(self._reads(made, [slots.fill(name) for name in template.reads])),
        )

    def _set_documents(self, slots: Filler, template: Template, draw: Draw, choice: Choice) -> None:
        taken: frozenset[str] = frozenset()
        for slot, kind in template.documents.items():
            drawn = draw.branch("document", slot)
            wanted = Choice(taken, choice.lookalike, choice.plain)
            found = self.house.find(kind, drawn, wanted)
            taken |= {found.key}
            for end, value in found.slots().items():
                slots.set(slot + end, value)
            opening = Filler(drawn.branch("opening"), self.words)
            opening.set("name", found.called or found.id)
            phrases = self.words[f"open_{found.medium}"]
            slots.set(f"{slot}_open", opening.fill(opening.draw.choice(phrases)))

    def _set_names(self, slots: Filler, template: Template) -> None:
        """Set what the user calls the house, new files and other people."""
        is_internal = self.site.is_internal_address
        slots.set("owner", self.site.owner)
        new = _drawn(slots, "{scratch}", self._is_new, "free path")
        slots.set("new", new)
        other = _drawn(slots, "{scratch}", lambda p: p != new and self._is_new(p), "free path")
        slots.set("new2", other)
        slots.set("url", _drawn(slots, "{url}", self.house.is_external, "external host"))
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
        slots.set("colleague", _drawn(slots, pattern, self._is_somebody_else, "internal address"))
        slots.set("intranet", slots.fill(f"https://{{hostnoun}}.{domain}/{{urlpath}}"))

    def _is_new(self, path: str) -> bool:
        # A rule against `curl` must not stumble over a file that is called after the curlew.
        return self.house.is_free(path) and "curl" not in path

    def _is_somebody_else(self, address: str) -> bool:
        return read_address(address) not in (None, self.site.owner)

    def _reads(self, calls: tuple[Call, ...], others: list[str]) -> Iterator[str]:
        """Yield the scenario's own documents that a task reads, each once."""
        found: dict[str, None] = dict.fromkeys(others)
        scenario, world = self.house.scenario, self.house.world
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
    """Draw words until they fit this scenario."""
    for number in range(MAX_REDRAWS):
        # A filler of its own: words that did not fit are not remembered.
        value = Filler(slots.draw.branch(template, number), slots.words).fill(template)
        if fits(value):
            return value
    raise StagingError(f"no {needed} could be found for this")
