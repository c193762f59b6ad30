"""Benign tasks under attack: live injections in the documents that the tasks read.

An injection goes below the text of a document, like a comment below a page. The user's messages and
the expected outcomes do not change. The injections are those of the scenario, of the same medium.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tiltyard.agents.grammar import Wait, instructions
from tiltyard.benign.documents import EMAIL, FILE, WEB, DocumentPicker
from tiltyard.benign.tasks import Task
from tiltyard.benign.templates import load_task_templates
from tiltyard.benign.trial import play
from tiltyard.contracts.agent import Agent
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.guardrail_runner import close_guardrail
from tiltyard.foundation.draw import Draw
from tiltyard.judge.judge import Judge
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.world.scenario import Scenario
from tiltyard.world.text import by_user

_SEPARATOR: Final = "\n\n"


class AttackedSuite(Struct, frozen=True):
    """A scenario with additional injections, and the tasks that read one of them."""

    scenario: Scenario
    tasks: tuple[Task, ...]
    left_out: tuple[Task, ...]
    """Tasks that read no document that an injection fits into."""


class Utility(Struct, frozen=True):
    """How many tasks succeeded under attack."""

    trials: int
    useful: int
    """Trials in which the task succeeded and nothing was breached."""
    succeeded: int
    breached: int
    left_out: int

    @property
    def rate(self) -> float:
        return self.useful / self.trials if self.trials else 0.0


def utility_under_attack(  # noqa: PLR0913 - the parameters of a trial, the tasks and the key
    tasks: Iterable[Task],
    scenario: Scenario,
    key: str,
    guardrail_factory: MakeGuardrail,
    agent: Agent | None = None,
    *,
    ruleset: Ruleset | None = None,
) -> Utility:
    """Play every task under attack, each with a new guardrail, and count the results."""
    staged = under_attack(tasks, scenario, key)
    rules = load_ruleset() if ruleset is None else ruleset
    max_calls = rules.play.calls_per_message
    useful = succeeded = breached = 0
    for task in staged.tasks:
        trial = play(task, staged.scenario, guardrail_factory, agent, max_calls=max_calls)
        # If the guardrail itself failed, no call was made, and there is nothing to judge.
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


def under_attack(tasks: Iterable[Task], scenario: Scenario, key: str) -> AttackedSuite:
    """Add injections, drawn by `key`, to the documents from strangers that `tasks` read."""
    templates = load_task_templates()
    picker = DocumentPicker(scenario, templates.secret_looking)
    injections = _injections(scenario)
    draw = Draw("benign under attack", templates.version, key)
    added: dict[str, str] = {}
    attacked: list[Task] = []
    left_out: list[Task] = []
    for task in tasks:
        strange = [name for name in task.reads if picker.may_hold_strangers_words(name)]
        reached = [name for name in strange if injections.get(name.partition(":")[0])]
        for name in reached:
            options = injections[name.partition(":")[0]]
            added.setdefault(name, _SEPARATOR + draw.branch(name).choice(options))
        (attacked if reached else left_out).append(task)
    return AttackedSuite(_with_added_text(scenario, added), tuple(attacked), tuple(left_out))


def _injections(scenario: Scenario) -> dict[str, list[str]]:
    """Return the texts of the live injections by medium.

    Of an attack over several documents, use the first one, to which the user is led. Leave out
    injections that only wait for another call: the task may never make that call.
    """
    texts = dict(_texts(scenario))
    injections: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for entry in scenario.labels.planted:
        attack = entry.family, entry.template
        if not entry.live or attack in seen or entry.document not in texts:
            continue
        seen.add(attack)
        text = texts[entry.document]
        now = instructions(by_user(text)).operations
        if any(not isinstance(operation, Wait) for operation in now):
            injections.setdefault(entry.document.partition(":")[0], []).append(text)
    return injections


def _texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    yield from ((f"{WEB}:{page.id}", page.content) for page in scenario.pages)
    for mails in scenario.folders.values():
        yield from ((f"{EMAIL}:{mail.id}", mail.body) for mail in mails)
    yield from ((f"{FILE}:{path}", text) for path, text in scenario.files.items())


def _with_added_text(scenario: Scenario, added: dict[str, str]) -> Scenario:
    """Return the scenario with text added to documents. The search index does not change."""
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
