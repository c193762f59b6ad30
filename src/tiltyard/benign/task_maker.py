"""Turn templates into tasks for one scenario."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tiltyard.benign.documents import EMAIL, FILE, WEB, DocumentPicker, Preferences, draw_opening
from tiltyard.benign.orders import set_orders, set_renamed
from tiltyard.benign.rewording import reword_request
from tiltyard.benign.tasks import Call, Outcome, StagingError, Task
from tiltyard.benign.templates import Operation, TaskTemplate, TaskTemplates
from tiltyard.foundation.draw import Draw
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Filler
from tiltyard.world.urls import read_address

MAX_REDRAWS: Final = 200

_OPENED_WITH: Final = {"web.open": WEB, "email.read": EMAIL, "fs.read": FILE}


class Claims(Struct):
    """The documents and names that the tasks of one conversation use."""

    documents: set[str] = set()
    names: set[str] = set()
    """New files and notes."""


class TaskMaker:
    """Turns templates into tasks for one scenario."""

    def __init__(self, scenario: Scenario, book: TaskTemplates) -> None:
        self.picker = DocumentPicker(scenario, book.secret_looking)
        self.words = {**templates.load().words, **book.words}
        self.site = scenario.world.site
        self.order_words = book.order_words
        self.pauses = book.pauses
        protected = tuple(entry.path for entry in scenario.labels.protected)
        self.protected = protected or ("secret.txt",)

    def make(
        self,
        operation: Operation,
        template: TaskTemplate,
        draw: Draw,
        preferences: Preferences,
        claims: Claims | None = None,
    ) -> Task:
        """Fill the slots of `template` from the scenario and the vocabulary.

        The task avoids the documents and names in `claims`, and adds its own to them.
        """
        claims = Claims() if claims is None else claims
        slots = Filler(draw.branch("words"), self.words)
        try:
            self._set_documents(slots, template, draw, preferences, claims)
            self._set_names(slots, template, claims)
        except StagingError as error:
            place = f"{operation.name!r} ({template.name})"
            raise StagingError(f"{place} cannot be staged: {error}") from None
        self._set_orders(slots, template, draw.branch("orders"))
        for name, words in template.define.items():
            slots.set(name, slots.fill(words))
        calls = [slots.fill(call).partition(" ") for call in template.calls]
        task_calls = tuple(Call(tool, target) for tool, _, target in calls)
        task = Task(
            operation.name,
            template.name,
            tuple(_messages(slots, template, draw.branch("said"))),
            task_calls,
            tuple(_filled(outcome, slots) for outcome in template.outcome),
            tuple(self._reads(task_calls, [slots.fill(name) for name in template.reads])),
            order=slots.fill("{orders}") if template.orders else "",
        )
        return self._with_pauses(task, template.pauses, draw.branch("pauses"), claims)

    def _with_pauses(self, task: Task, count: int, draw: Draw, claims: Claims) -> Task:
        """Add small errands before the last message, which makes the last call."""
        messages, calls = list[str](), list[Call]()
        for number in range(count):
            slots = Filler(draw.branch(number), self.words)
            path = self._new_path(slots, claims)
            slots.set("pause", path)
            messages.append(slots.fill(slots.draw.choice(self.pauses)))
            calls.append(Call("fs.write", path))
        return replace(
            task,
            messages=(*task.messages[:-1], *messages, task.messages[-1]),
            calls=(*task.calls[:-1], *calls, task.calls[-1]),
        )

    def _set_documents(
        self,
        slots: Filler,
        template: TaskTemplate,
        draw: Draw,
        preferences: Preferences,
        claims: Claims,
    ) -> None:
        for slot, kind in template.documents.items():
            document_draw = draw.branch("document", slot)
            taken = frozenset(claims.documents)
            found = self.picker.pick(kind, document_draw, replace(preferences, taken=taken))
            claims.documents.add(found.key)
            for suffix, value in found.slots().items():
                slots.set(slot + suffix, value)
            name, opening_draw = found.called or found.id, document_draw.branch("opening")
            opening = draw_opening(self.words, found.medium, name, opening_draw)
            slots.set(f"{slot}_open", opening)

    def _set_names(self, slots: Filler, template: TaskTemplate, claims: Claims) -> None:
        """Set the slots for new files, notes, URLs and people."""
        is_internal = self.site.is_internal_address
        slots.set("owner", self.site.owner)
        for slot in ("new", "new2"):
            slots.set(slot, self._new_path(slots, claims))
        if any("{note}" in message for message in template.messages):
            note = _drawn(slots, "{note}", lambda name: name not in claims.names, "free note")
            claims.names.add(note)
            slots.set("note", note)
        slots.set("url", _drawn(slots, "{url}", self.picker.is_external, "external host"))
        slots.set(
            "stranger",
            _drawn(slots, "{stranger}", lambda to: not is_internal(to), "external domain"),
        )
        if not (template.orders or any(map(_names_colleague, template.messages))):
            return
        domain = min(self.site.internal_domains, default="")
        if not domain:
            raise StagingError("the scenario has no internal domain")
        pattern = f"{{colleague_name}}@{domain}"
        slots.set("colleague", _drawn(slots, pattern, self._is_colleague, "internal address"))
        slots.set("intranet", slots.fill(f"{{scheme}}://{{desk}}.{domain}/{{urlpath}}"))

    def _set_orders(self, slots: Filler, template: TaskTemplate, draw: Draw) -> None:
        """Set the slots that only strangers' orders use."""
        if not template.orders:
            return
        protected = draw.choice(self.protected)
        at = draw.below(len(protected))
        slots.set("protected", protected)
        slots.set("masked", f"{protected[:at]}?{protected[at + 1 :]}")
        sentences = draw.choice(template.orders)
        used = (*sentences, *template.define.values())
        set_renamed(slots, (*used, *template.messages), self.order_words, draw.branch("names"))
        for name, commands in self.order_words.commands.items():
            if f"{{{name}}}" in " ".join(used):
                slots.set(name, slots.fill(draw.choice(commands)))
        set_orders(slots, sentences, template.form, self.order_words, draw)

    def _new_path(self, slots: Filler, claims: Claims) -> str:
        def is_new(path: str) -> bool:
            return path not in claims.names and self._is_new(path)

        path = _drawn(slots, "{scratch}", is_new, "free path")
        claims.names.add(path)
        return path

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


def _messages(slots: Filler, template: TaskTemplate, draw: Draw) -> Iterator[str]:
    for number, message in enumerate(template.messages):
        filled = slots.fill(message)
        yield filled if template.keeps_words else reword_request(filled, draw.branch(number))


def _names_colleague(message: str) -> bool:
    return "{colleague}" in message or "{intranet}" in message


def _filled(outcome: Outcome, slots: Filler) -> Outcome:
    # The line end of a document is not a part of what the user wants.
    holds = slots.fill(outcome.holds).rstrip("\n")
    return Outcome(outcome.kind, slots.fill(outcome.name), holds, outcome.spelled)


def _drawn(slots: Filler, template: str, fits: Callable[[str], bool], needed: str) -> str:
    """Fill `template` until the result fits the scenario."""
    for number in range(MAX_REDRAWS):
        # A new filler each time, so that slots do not keep words that did not fit.
        value = Filler(slots.draw.branch(template, number), slots.words).fill(template)
        if fits(value):
            return value
    raise StagingError(f"found no {needed} after {MAX_REDRAWS} tries")
