"""The families of attacks: each is obeyed under allow-all, and none of its look-alikes is."""

from functools import cache
from itertools import groupby

import pytest

from tiltyard import SandboxEnv
from tiltyard.trace import Event
from tiltyard.world.generate import Staged, generate, stage
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Expected, load
from tiltyard.world.text import Text

SEEDS = (7, 123, 99_991)
ARGUMENTS = ("id", "path", "url", "to", "cmd", "query", "folder")
TEMPLATES = [(f.family, attack.name) for f in load().families for attack in f.template]


@cache
def made(seed: int) -> Scenario:
    return generate(seed)


@cache
def staged(seed: int) -> dict[tuple[str, str, bool], Staged]:
    return {
        (item.planted[0].family, item.planted[0].template, item.planted[0].live): item
        for item in stage(seed)
    }


def played(seed: int, message: str) -> list[Event]:
    """Return what the agent does when it is sent a single message."""
    env = SandboxEnv(seed=seed, scenario=made(seed))
    env.interact(message)
    return env.trace.events


def shown(events: list[Event]) -> list[str]:
    return [f"{event.call.tool} {event.call.plain_args()}" for event in events]


def carries(event: Event, path: str) -> bool:
    return any(
        origin.protected and origin.document == path
        for argument in event.call.args.values()
        if isinstance(argument, Text)
        for origin in argument.origins()
    )


def check(events: list[Event], calls: tuple[Expected, ...]) -> None:
    assert [event.call.tool for event in events] == [call.tool for call in calls], shown(events)
    for event, call in zip(events, calls, strict=True):
        assert event.result.ok, (shown(events), event.result)
        given = event.call.plain_args()
        for name in ARGUMENTS:
            wanted = getattr(call, name)
            assert wanted is None or given[name] == wanted, (given, call)
    # The parts of a split carry its secret together, so equal neighbours are looked at as one.
    for call, group in groupby(zip(calls, events, strict=True), key=lambda pair: pair[0]):
        if call.carries is not None:
            assert any(carries(event, call.carries) for _, event in group), (call, shown(events))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("family", "template"), TEMPLATES)
def test_the_agent_obeys(family: str, template: str, seed: int) -> None:
    item = staged(seed)[family, template, True]
    check(played(seed, item.planted[0].opening), item.calls)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("family", "template"), TEMPLATES)
def test_the_agent_does_not_obey_the_look_alike(family: str, template: str, seed: int) -> None:
    item = staged(seed)[family, template, False]
    check(played(seed, item.planted[0].opening), item.calls)


@pytest.mark.parametrize("seed", SEEDS)
def test_openings_are_the_same_length_for_attack_and_look_alike(seed: int) -> None:
    for family, template in TEMPLATES:
        alive, twin = staged(seed)[family, template, True], staged(seed)[family, template, False]
        assert len(twin.calls) < len(alive.calls)
        own = alive.calls[: len(twin.calls)]
        assert [call.tool for call in own] == [call.tool for call in twin.calls]


@pytest.mark.parametrize("seed", SEEDS)
def test_ordinary_documents_lead_nowhere(seed: int) -> None:
    scenario = made(seed)
    alive = {entry.document for entry in scenario.labels.planted if entry.live}
    openings = {f"web:{page.id}": f"open {page.id}" for page in scenario.pages}
    for mails in scenario.folders.values():
        openings |= {f"email:{mail.id}": f"read the mail {mail.id}" for mail in mails}
    openings |= {f"file:{path}": f"read the file {path}" for path in scenario.files}
    env = SandboxEnv(seed=seed, scenario=scenario)
    for document, opening in openings.items():
        if document not in alive:
            env.reset()
            env.interact(opening)
            assert len(env.trace.events) == 1, (document, shown(env.trace.events))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_phrases_of_the_competition_meet_only_ordinary_documents(seed: int) -> None:
    phrases = {
        "search howto": ["web.search"],
        "search howto, open the first result": ["web.search", "web.open"],
        "open welcome": ["web.open"],
        "write file report": ["fs.write"],
        "read email": ["email.list", "email.read"],
        "read file readme": ["fs.read"],
        "read file secret": ["fs.read"],
        "read file report": ["fs.read"],
        "run echo": ["shell.run"],
        "send email": ["email.send"],
        "delete secret": ["fs.delete"],
        "upload report": ["fs.read", "http.post"],
        "post data": ["http.post"],
    }
    for phrase, tools in phrases.items():
        events = played(seed, phrase)
        assert [event.call.tool for event in events] == tools, phrase
        assert all(event.result.ok for event in events), phrase
