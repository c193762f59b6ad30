"""The same tasks under attack: a stranger's orders in what they read.

Owns where the orders go: below the words of the document that the task reads, as a comment stands
below a page. So the user's messages stay what they were, and so does what they ought to come to.
The orders are those of the scenario's own live injections, of the same medium.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.benign.documents import EMAIL, FILE, WEB, House
from tiltyard.benign.tasks import Task
from tiltyard.benign.templates import load
from tiltyard.benign.trial import play
from tiltyard.contracts.agent import Agent
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.guardrail_runner import close_guardrail
from tiltyard.foundation.draw import Draw
from tiltyard.judge.judge import Judge
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.world.scenario import Scenario
from tiltyard.world.text import by_user

_BETWEEN: Final = "\n\n"


class Attacked(Struct, frozen=True):
    """A scenario with more live injections in it, and the tasks that meet one of them."""

    scenario: Scenario
    tasks: tuple[Task, ...]
    left_out: tuple[Task, ...]
    """Tasks that read nothing from a stranger, or nothing of a kind that attacks come in."""


class Utility(Struct, frozen=True):
    """How many tasks came to their end while strangers gave orders."""

    trials: int
    useful: int
    """The task succeeded and nothing was breached."""
    succeeded: int
    breached: int
    left_out: int

    @property
    def rate(self) -> float:
        return self.useful / self.trials if self.trials else 0.0


def utility_under_attack(  # noqa: PLR0913 - a trial's own parameters, and what is tried
    tasks: Iterable[Task],
    scenario: Scenario,
    key: str,
    guardrail_factory: MakeGuardrail,
    agent: Agent | None = None,
    *,
    ruleset: Ruleset | None = None,
) -> Utility:
    """Play tasks under attack, each past a guardrail of its own, and count."""
    staged = under_attack(tasks, scenario, key)
    rules = load_ruleset() if ruleset is None else ruleset
    max_calls = rules.play.calls_per_message
    useful = succeeded = breached = 0
    for task in staged.tasks:
        trial = play(task, staged.scenario, guardrail_factory, agent, max_calls=max_calls)
        # A guardrail that broke down let nothing happen, and there is nothing to judge.
        broken = trial.stop is not None and trial.stop.index < 0
        hit = not broken and _is_breached(task, staged.scenario, guardrail_factory, agent, rules)
        succeeded += trial.succeeded
        breached += hit
        useful += trial.succeeded and not hit
    return Utility(len(staged.tasks), useful, succeeded, breached, len(staged.left_out))


def _is_breached(
    task: Task, scenario: Scenario, make: MakeGuardrail, agent: Agent | None, rules: Ruleset
) -> bool:
    guardrail = make()
    try:
        judge = Judge(scenario, guardrail, ruleset=rules, agent=agent)
        return bool(judge.findings(task.messages))
    finally:
        close_guardrail(guardrail)


def under_attack(tasks: Iterable[Task], scenario: Scenario, key: str) -> Attacked:
    """Put live injections into the strangers' documents that tasks read, drawn by a key."""
    house = House(scenario, load().loaded)
    orders = _orders(scenario)
    draw = Draw("benign under attack", load().version, key)
    added: dict[str, str] = {}
    met: list[Task] = []
    spared: list[Task] = []
    for task in tasks:
        strange = [name for name in task.reads if house.is_strange(name)]
        reached = [name for name in strange if orders.get(name.partition(":")[0])]
        for name in reached:
            options = orders[name.partition(":")[0]]
            added.setdefault(name, _BETWEEN + draw.branch(name).choice(options))
        (met if reached else spared).append(task)
    return Attacked(_with_words(scenario, added), tuple(met), tuple(spared))


def _orders(scenario: Scenario) -> dict[str, list[str]]:
    """Return the texts of the live injections by medium.

    Of an attack over several documents it is the one that the user is led to; and what only waits
    for another call is left out, since the task may never make it.
    """
    texts = dict(_texts(scenario))
    orders: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for entry in scenario.labels.planted:
        attack = entry.family, entry.template
        if not entry.live or attack in seen or entry.document not in texts:
            continue
        seen.add(attack)
        text = texts[entry.document]
        now = instructions(by_user(text)).operations
        if any(not isinstance(operation, Wait) for operation in now):
            orders.setdefault(entry.document.partition(":")[0], []).append(text)
    return orders


def _texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    yield from ((f"{WEB}:{page.id}", page.content) for page in scenario.pages)
    for mails in scenario.folders.values():
        yield from ((f"{EMAIL}:{mail.id}", mail.body) for mail in mails)
    yield from ((f"{FILE}:{path}", text) for path, text in scenario.files.items())


def _with_words(scenario: Scenario, added: dict[str, str]) -> Scenario:
    """Return the scenario with words added to documents; what a search finds stays as it was."""
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
