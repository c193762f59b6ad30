"""The live injections of a scenario, and how to add one to another document.

An injection goes below the text of a document, like a comment below a page.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Final

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

    Of an attack over several documents, use the first one, to which the user is led. Leave out
    injections that only wait for another call: the task may never make that call.
    """
    texts = dict(_texts(scenario))
    injections: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for entry in scenario.labels.planted:
        attack, medium = (entry.family, entry.template), medium_of(entry.document)
        if not entry.live or attack in seen or entry.document not in texts:
            continue
        seen.add(attack)
        if medium not in media:
            continue
        text = texts[entry.document]
        now = instructions(by_user(text)).operations
        if any(not isinstance(operation, Wait) for operation in now):
            injections.setdefault(medium, []).append(text)
    return injections


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
