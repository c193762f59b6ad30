"""The live injections of a scenario, and how to add one to another document."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec.structs import replace

from tiltyard.agents.grammar import Operation, Wait, instructions
from tiltyard.benign import foreign_lines
from tiltyard.benign.documents import EMAIL, FILE, WEB, Preferences
from tiltyard.benign.rewording import reword
from tiltyard.benign.task_maker import TaskMaker
from tiltyard.benign.tasks import StagingError
from tiltyard.benign.templates import load_task_templates
from tiltyard.foundation.draw import Draw
from tiltyard.world.scenario import Labels, Scenario
from tiltyard.world.text import by_user

CLOSE_CALLS: Final = 24
"""How many orders that come close to the requests of users give words to harmless lines."""
LONG_LINES: Final = 96
"""How many lines the long documents of a match share."""
_PARAGRAPH: Final = "\n\n"
_SENTENCE_ENDS: Final = (".", "!", "?")


def live_injections(
    scenario: Scenario, media: Container[str] = (WEB, EMAIL, FILE)
) -> dict[str, list[str]]:
    """Return the texts of the live injections in these media, by medium.

    Leave out injections that only wait for another call: the task may never make that call.
    """
    injections: dict[str, list[str]] = {}
    for medium, text in _live(scenario, media):
        now = instructions(by_user(text)).operations
        if any(not isinstance(operation, Wait) for operation in now):
            injections.setdefault(medium, []).append(text)
    return injections


class WaitingInjection(NamedTuple):
    """An injection with an order that waits until the agent calls a tool."""

    medium: str
    text: str
    tool: str


def waiting_injections(scenario: Scenario, media: Container[str]) -> list[WaitingInjection]:
    return [
        WaitingInjection(medium, text, operation.tool)
        for medium, text in _live(scenario, media)
        for operation in instructions(by_user(text)).operations
        if isinstance(operation, Wait)
    ]


def _live(scenario: Scenario, media: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield medium and text of each live injection.

    Of an attack over several documents, use the first one, to which the user is led.
    """
    seen: set[tuple[str, str]] = set()
    for entry in scenario.labels.planted:
        attack, medium = (entry.family, entry.template), medium_of(entry.document)
        if entry.live and attack not in seen:
            seen.add(attack)
            if medium in media:
                yield medium, entry.payload


def medium_of(document: str) -> str:
    return document.partition(":")[0]


def inject(scenario: Scenario, injections: Mapping[str, str]) -> Scenario:
    """Return the scenario with an injection in each document that `injections` names.

    An injection takes the place of a foreign line, if the document has one: a guardrail must not
    know a poisoned document by the number of its unlisted sentences.
    """

    def injected(document: str, text: str) -> str:
        injection = injections.get(document)
        if injection is None:
            return text
        for line in scenario.added.get(document, ())[:1]:
            text = foreign_lines.remove_line(text, line)
        return _insert(injection, text, document)

    return _edit(scenario, injected, scenario.labels)


def reword_planted(scenario: Scenario, draw: Draw) -> Scenario:
    """Return the scenario with its own live injections in other words."""
    planted = tuple(
        replace(entry, payload=reword(entry.payload, draw.branch(entry.document)))
        if entry.live
        else entry
        for entry in scenario.labels.planted
    )
    pairs = zip(scenario.labels.planted, planted, strict=True)
    payloads = {new.document: (old.payload, new.payload) for old, new in pairs if old != new}

    def reworded(document: str, text: str) -> str:
        return text.replace(*payloads[document]) if document in payloads else text

    return _edit(scenario, reworded, replace(scenario.labels, planted=planted))


def add_foreign_lines(scenario: Scenario, draw: Draw) -> Scenario:
    """Return the scenario with a few lines in its pages and mails that are in no public list.

    The lines use the orders of the scenario's own live injections and those of a battery, so that
    the same names and the same words stand in harmless documents.
    """
    texts = [entry.payload for entry in scenario.labels.planted if entry.live]
    texts += _close_calls(scenario, draw.branch("close calls"))
    orders = [
        operation
        for text in texts
        for operation in instructions(by_user(text)).operations
        if not isinstance(operation, Wait)
    ]
    lines = _harmless_lines(orders, draw.branch("lines"))
    planted = {entry.document for entry in scenario.labels.planted if entry.live}
    added: dict[str, tuple[str, ...]] = {}

    def changed(document: str, text: str) -> str:
        if medium_of(document) == FILE:
            return text  # Guardrails may trust files of the owner, whatever is in them.
        # A planted order counts as one of the lines.
        fewer = int(document in planted)
        longer, few = foreign_lines.add_foreign_lines(text, orders, draw.branch(document), fewer)
        added[document] = few
        if draw.branch("long", document).chance(1, foreign_lines.LONG_ONE_IN):
            longer = foreign_lines.lengthen(longer, lines, draw.branch("lines", document))
        return longer

    return replace(_edit(scenario, changed, scenario.labels), added=added)


def _harmless_lines(orders: Sequence[Operation], draw: Draw) -> list[str]:
    """Draw the lines of long documents. None looks secret: users read such documents seldom."""
    drawn = (foreign_lines.draw_line(orders, draw.branch(number)) for number in range(LONG_LINES))
    signs = load_task_templates().secret_looking
    return [line for line in drawn if not any(sign in line.lower() for sign in signs)]


def _close_calls(scenario: Scenario, draw: Draw) -> Iterator[str]:
    """Yield orders that come close to the requests of users. Small scenarios allow only some."""
    book = load_task_templates()
    maker = TaskMaker(scenario, book)
    for number, part in enumerate(draw.sample(book.close_calls(), CLOSE_CALLS)):
        with suppress(StagingError):
            yield maker.make(*part, draw.branch(number), Preferences(plain=True)).order


def _edit(scenario: Scenario, edited: Callable[[str, str], str], labels: Labels) -> Scenario:
    """Change the texts of documents; `edited` gets the name and the text of each.

    The search index does not change.
    """
    pages = tuple(
        replace(page, content=edited(f"{WEB}:{page.id}", page.content)) for page in scenario.pages
    )
    folders = {
        folder: tuple(replace(mail, body=edited(f"{EMAIL}:{mail.id}", mail.body)) for mail in mails)
        for folder, mails in scenario.folders.items()
    }
    contents = {path: edited(f"{FILE}:{path}", text) for path, text in scenario.files.items()}
    return Scenario(pages, folders, contents, labels, scenario.world.web.index, scenario.added)


def _insert(injection: str, text: str, document: str) -> str:
    """Put an injection above or below a text, as a paragraph or in the first or last one.

    A guardrail must not know an injection by its place. The text stays in one piece: the user may
    want to keep it.
    """
    draw = Draw("injection", document, injection)
    body = text.rstrip("\n")
    above, inline = draw.chance(1, 3), draw.chance(1, 2) and medium_of(document) != EMAIL
    first, second = (injection, body) if above else (body, injection)
    last_line = first.rpartition("\n")[2]
    # A quotation is not obeyed, and a sentence must end before the next one begins.
    joined = inline and last_line[:1] not in (">", "-") and last_line.endswith(_SENTENCE_ENDS)
    return f"{first}{' ' if joined else _PARAGRAPH}{second}\n"
