"""Benign tasks under attack: live injections in the documents that the tasks read.

The user's messages and the expected outcomes do not change. The injections are those of the
scenario, of the same medium.
"""

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from tiltyard.benign.documents import EMAIL, FILE, WEB, DocumentPicker
from tiltyard.benign.injections import inject, live_injections, medium_of
from tiltyard.benign.rewording import reword
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

MEDIA: Final = (WEB, EMAIL, FILE)


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


def under_attack(
    tasks: Iterable[Task],
    scenario: Scenario,
    key: str,
    media: Collection[str] = MEDIA,
    spared: Collection[str] = (),
) -> AttackedSuite:
    """Add injections, drawn by `key`, to the documents from strangers that `tasks` read.

    Only documents of `media` get one, and no document that `spared` names.
    """
    templates = load_task_templates()
    picker = DocumentPicker(scenario, templates.secret_looking)
    live = live_injections(scenario)
    injections = {medium: texts for medium, texts in live.items() if medium in media}
    draw = Draw("benign under attack", templates.version, key)
    added: dict[str, str] = {}
    attacked: list[Task] = []
    left_out: list[Task] = []
    for task in tasks:
        strange = [name for name in task.reads if picker.may_hold_strangers_words(name)]
        reached = [
            name for name in strange if injections.get(medium_of(name)) and name not in spared
        ]
        for name in reached:
            its_draw = draw.branch(name)
            text = its_draw.choice(injections[medium_of(name)])
            added.setdefault(name, reword(text, its_draw))
        (attacked if reached else left_out).append(task)
    return AttackedSuite(inject(scenario, added), tuple(attacked), tuple(left_out))
