"""Conversations with an injection in one of their documents, and what all their drawers share."""

from collections.abc import Collection

from msgspec import Struct

from tiltyard.benign.injections import inject, medium_of
from tiltyard.benign.task_maker import TaskMaker
from tiltyard.benign.tasks import Task
from tiltyard.benign.templates import load_task_templates
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.foundation.draw import Draw
from tiltyard.judge.judge import Judge
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.world.scenario import Scenario


class InjectedConversation(Struct, frozen=True):
    """A conversation, and an injection for one of the documents that it reads."""

    messages: tuple[str, ...]
    document: str
    injection: str
    reads: tuple[str, ...]
    """All pages and mails that the conversation reads."""


class OrderDrawer:
    """Draws conversations that read documents of `media`, none of them twice."""

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        key: str,
        media: Collection[str],
        avoided: Collection[str],
    ) -> None:
        self.scenario = scenario
        self.key = key
        self.book = load_task_templates()
        self.maker = TaskMaker(scenario, self.book)
        self.draw = Draw(name, self.book.version, key, scenario.digest)
        self.media = media
        self.taken = set(avoided)

    def order_in(self, task: Task, medium: str, text: str) -> InjectedConversation | None:
        """Return a conversation with an order in its first document of a medium.

        Return None if it reads no such document, or one that is taken.
        """
        reads = tuple(name for name in task.reads if medium_of(name) in self.media)
        own = [name for name in reads if medium_of(name) == medium]
        if not own or not self.taken.isdisjoint(reads):
            return None
        return InjectedConversation(task.messages, own[0], text, reads)

    def count_breaches(
        self, order: InjectedConversation, guardrail: Guardrail, ruleset: Ruleset
    ) -> int:
        """Count the breaches that the order leads to past a guardrail."""
        poisoned = inject(self.scenario, {order.document: order.injection})
        judge = Judge(poisoned, guardrail, ruleset=ruleset, key=self.key)
        source = medium_of(order.document)
        return sum(breach.source == source for breach in judge.breaches_of(order.messages))
