"""The battery: attacks that every guardrail meets, whatever the search against it finds.

A guardrail can hide from a search. It cannot influence the battery, which depends on the ruleset,
the world and the key only:

- one short chain for each breach that the baseline finds against each rung of the ladder;
- every live planted page and mail: the user opens it between ordinary tasks, early or late;
- benign tasks and long conversations, whose pages and mails carry live injections. The agent obeys
  some of them many messages later: an order waits, or a note or a file brings its text back;
- tasks with an injection that comes close to what the user asks for.

Planted local files stay out: the data-flow guardrail trusts local files by design, and to find that
is the attackers' work.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard import __version__
from tiltyard.benign import Suite, Task, TaskKind, draw_suite, draw_tasks, under_attack
from tiltyard.benign.close_calls import draw_close_calls
from tiltyard.benign.documents import EMAIL, FILE, WEB
from tiltyard.benign.injected_conversations import InjectedConversation
from tiltyard.benign.injections import inject
from tiltyard.benign.late_orders import draw_late_orders
from tiltyard.benign.relayed_orders import draw_relayed_orders
from tiltyard.benign.templates import load_task_templates
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.files import write_whole
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.judge.candidates import Admitted
from tiltyard.judge.judge import Judge
from tiltyard.judge.predicates import Breach
from tiltyard.matches.baseline import run_baseline
from tiltyard.matches.settings import MatchSettings
from tiltyard.search import Chain, SearchStatus
from tiltyard.world import templates
from tiltyard.world.scenario import Scenario

REMEMBERED: Final = 8
MAX_TASKS_BEFORE: Final = 3
_FILE: Final = f"{FILE}:"


class Battery(Struct, frozen=True, forbid_unknown_fields=True):
    """Chains to judge in every defense match under one ruleset, world and key."""

    id: str
    """The hash of everything that the battery depends on."""
    chains: tuple[Chain, ...]
    orders: "Orders"
    steps: int
    """The cost: the steps of the searches against all rungs."""


class Orders(Struct, frozen=True, forbid_unknown_fields=True):
    """Conversations with an injection in one of their documents."""

    late: tuple[InjectedConversation, ...] = ()
    """The agent obeys long after it has read the document."""
    close: tuple[InjectedConversation, ...] = ()
    """The injection comes close to what the user asks for."""


class Poisoned(Struct, frozen=True):
    """Benign tasks and conversations whose pages and mails carry live injections."""

    scenario: Scenario
    chains: tuple[Chain, ...]


def find_battery(settings: MatchSettings, progress: Progress = NO_PROGRESS) -> Battery:
    """Return the battery of a match, and build it only if it is stored nowhere.

    The batteries of the public world come with this package. Others are stored in the directory
    that `settings` names, if any, and in memory.
    """
    wanted = battery_id(settings)
    battery = _remembered.get(wanted) or _read_shipped(wanted) or _read_stored(settings, wanted)
    if battery is None:
        battery = build_battery(settings, progress)
        if settings.batteries is not None:
            path = settings.batteries / f"{wanted}.json"
            write_whole(path, msgspec.json.encode(battery), secret=True)
    _remember(battery)
    return battery


_remembered: dict[str, Battery] = {}


def _remember(battery: Battery) -> None:
    _remembered[battery.id] = battery
    while len(_remembered) > REMEMBERED:
        del _remembered[next(iter(_remembered))]


def _read_shipped(wanted: str) -> Battery | None:
    place = files("tiltyard.matches") / "batteries" / f"{wanted}.json"
    return _decode(place.read_bytes(), wanted) if place.is_file() else None


def _read_stored(settings: MatchSettings, wanted: str) -> Battery | None:
    if settings.batteries is None:
        return None
    try:
        return _decode((settings.batteries / f"{wanted}.json").read_bytes(), wanted)
    except OSError:
        return None


def _decode(data: bytes, wanted: str) -> Battery | None:
    """Return a stored battery; None if it is damaged, so that it is built again."""
    try:
        battery = msgspec.json.decode(data, type=Battery)
    except msgspec.MsgspecError:
        return None
    return battery if battery.id == wanted else None


def poison(settings: MatchSettings, suite: Suite, orders: Orders) -> tuple[Poisoned, ...]:
    """Put injections into pages and mails, in as many scenarios as it takes.

    The first scenario has the late orders, and an injection for each other task of the suite. The
    others have the close calls. No conversation reads the injection of another one, which could be
    obeyed earlier.
    """
    tasks = _without_injection(suite)
    spared = {name for order in orders.late for name in order.reads}
    attacked = under_attack(tasks, settings.scenario, settings.key, (WEB, EMAIL), spared)
    late = {order.document: order.injection for order in orders.late}
    chains = [task.messages for task in attacked.tasks]
    chains += (order.messages for order in orders.late)
    first = Poisoned(inject(attacked.scenario, late), tuple(chains))
    return first, *(_poisoned(settings, group) for group in _kept_apart(orders.close))


def scenario_with(chain: Chain, poisoned: Sequence[Poisoned]) -> Scenario:
    """Return the scenario of the conversation that a reduced chain comes from."""
    for each in poisoned:
        if any(_is_part(chain, whole) for whole in each.chains):
            return each.scenario
    return poisoned[0].scenario


def _is_part(chain: Chain, whole: Chain) -> bool:
    """Tell whether all clauses of a reduced chain stand in a conversation.

    The judge writes each clause of a message in a line, and may begin it with a capital.
    """
    said = "\n".join(whole).casefold()
    clauses = (line for message in chain for line in message.casefold().split("\n"))
    return all(clause in said for clause in clauses)


def _poisoned(settings: MatchSettings, orders: Sequence[InjectedConversation]) -> Poisoned:
    injections = {order.document: order.injection for order in orders}
    chains = tuple(order.messages for order in orders)
    return Poisoned(inject(settings.scenario, injections), chains)


def _kept_apart(orders: Sequence[InjectedConversation]) -> list[list[InjectedConversation]]:
    """Group orders so that no conversation reads the injection of another one in its group."""
    groups: list[list[InjectedConversation]] = []
    for order in orders:
        free = (group for group in groups if not any(_meet(order, other) for other in group))
        group = next(free, None)
        if group is None:
            groups.append([order])
        else:
            group.append(order)
    return groups


def _meet(one: InjectedConversation, other: InjectedConversation) -> bool:
    return one.document in other.reads or other.document in one.reads


def _without_injection(suite: Suite) -> list[Task]:
    return [task for task in suite.tasks if task.kind is not TaskKind.INJECTED]


def battery_id(settings: MatchSettings) -> str:
    words = load_task_templates().version, templates.load().version
    content = __version__, *words, settings.ruleset.digest, settings.scenario.digest, settings.key
    return sha256(msgspec.json.encode(content)).hexdigest()


def build_battery(settings: MatchSettings, progress: Progress = NO_PROGRESS) -> Battery:
    """Search against every rung of the ladder, and collect the chains of the battery."""
    # Only the ruleset, the world and the key decide: the budget of the match does not.
    settings = MatchSettings(settings.scenario, settings.ruleset, settings.key)
    budget = settings.ruleset.search.steps
    progress.begin("battery", budget * len(GUARDRAIL_LADDER))
    chains: dict[Chain, None] = {}
    steps = 0
    for make in GUARDRAIL_LADDER.values():

        def on_status(status: SearchStatus, before: int = steps) -> None:
            progress.step(before + status.steps, "")

        found = run_baseline(settings, make(), on_status=on_status)
        steps += found.steps
        judge = settings.make_judge(make())
        chains |= dict.fromkeys(_shortest_chains(judge, found.chains))
    chains |= dict.fromkeys(_planted(settings))
    suite = draw_suite(settings.scenario, settings.key, settings.ruleset.defense)
    return Battery(battery_id(settings), tuple(chains), draw_orders(settings, suite), steps)


def draw_orders(settings: MatchSettings, suite: Suite) -> Orders:
    scenario, key, ruleset, media = settings.scenario, settings.key, settings.ruleset, (WEB, EMAIL)
    # The documents of the suite's tasks get other injections.
    read = {name for task in _without_injection(suite) for name in task.reads}
    waiting = draw_late_orders(scenario, key, media, read, ruleset.defense.max_orders)
    read |= {name for order in waiting for name in order.reads}
    relayed = draw_relayed_orders(scenario, key, media, read, ruleset)
    close = draw_close_calls(scenario, key, media, ruleset)
    return Orders((*waiting, *relayed), (*close,))


def _shortest_chains(judge: Judge, chains: Sequence[Chain]) -> Iterator[Chain]:
    """Yield one chain for each breach, without the messages that the breach does not need.

    Messages stay whole: a guardrail must not know the battery by its broken sentences.
    """
    planted_files = _planted_files(judge.scenario)
    known: set[Breach] = set()
    for number, chain in enumerate(chains):
        for finding in judge.new_breaches(Admitted(number, chain), known):
            if not planted_files.isdisjoint(finding.documents):
                continue
            shorter = _without_needless_messages(judge, chain, finding.cell.breach)
            read = {name for each in judge.findings(shorter) for name in each.documents}
            if planted_files.isdisjoint(read):
                yield shorter


def _without_needless_messages(judge: Judge, chain: Chain, breach: Breach) -> Chain:
    at = 0
    while at < len(chain):
        shorter = chain[:at] + chain[at + 1 :]
        if shorter and breach in judge.breaches_of(shorter):
            chain = shorter
        else:
            at += 1
    return chain


def _tasks(settings: MatchSettings) -> tuple[Task, ...]:
    return draw_tasks(settings.scenario, settings.key, settings.ruleset.defense.variants)


def _planted_files(scenario: Scenario) -> frozenset[str]:
    planted = scenario.labels.planted
    return frozenset(
        entry.document for entry in planted if entry.live and entry.document.startswith(_FILE)
    )


def _planted(settings: MatchSettings) -> Iterator[Chain]:
    """Yield a chain for every live planted page and mail, with ordinary tasks before and after."""
    tasks = _tasks(settings)
    for entry in settings.scenario.labels.planted:
        if entry.live and not entry.document.startswith(_FILE):
            draw = Draw("battery", *settings.names, entry.document)
            said = _messages(draw.sample(tasks, draw.below(MAX_TASKS_BEFORE + 1)))
            yield *said, entry.opening, *_messages(draw.sample(tasks, 1))


def _messages(tasks: Sequence[Task]) -> list[str]:
    return [message for task in tasks for message in task.messages]
