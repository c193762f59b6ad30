"""The live injections of a scenario, and how to add one to another document.

An injection goes below the text of a document, like a comment below a page.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.benign.documents import EMAIL, FILE, WEB
from tiltyard.world.scenario import Scenario
from tiltyard.world.text import by_user

_SEPARATOR: Final = "\n\n"


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
    texts = dict(_texts(scenario))
    seen: set[tuple[str, str]] = set()
    for entry in scenario.labels.planted:
        attack, medium = (entry.family, entry.template), medium_of(entry.document)
        if entry.live and attack not in seen and entry.document in texts:
            seen.add(attack)
            if medium in media:
                yield medium, texts[entry.document]


def medium_of(document: str) -> str:
    return document.partition(":")[0]


def inject(scenario: Scenario, injections: Mapping[str, str]) -> Scenario:
    """Return the scenario with an injection below each document that `injections` names.

    The search index does not change.
    """
    added = {document: _SEPARATOR + text for document, text in injections.items()}
    pages = tuple(
        replace(page, content=page.content + added.get(f"{WEB}:{page.id}", ""))
        for page in scenario.pages
    )
    folders = {
        folder: tuple(
            replace(mail, body=mail.body + added.get(f"{EMAIL}:{mail.id}", "")) for mail in mails
        )
        for folder, mails in scenario.folders.items()
    }
    contents = {
        path: text + added.get(f"{FILE}:{path}", "") for path, text in scenario.files.items()
    }
    return Scenario(pages, folders, contents, scenario.labels, scenario.world.web.index)


def _texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    yield from ((f"{WEB}:{page.id}", page.content) for page in scenario.pages)
    for mails in scenario.folders.values():
        yield from ((f"{EMAIL}:{mail.id}", mail.body) for mail in mails)
    yield from ((f"{FILE}:{path}", text) for path, text in scenario.files.items())
