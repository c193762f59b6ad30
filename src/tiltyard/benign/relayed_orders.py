"""Conversations in which a stranger's text comes back in a later message, with an order in it.

The user keeps a page or mail in a note or a file, and reads it again later. A guardrail that
distrusts the text only in the message in which the agent opens the document lets the order pass.
The conversations are drawn like the long ones of the suite, which relay harmless documents.
"""

from collections.abc import Collection, Iterator
from itertools import cycle, islice
from typing import Any, Final

from tiltyard.benign.conversations import MAX_MESSAGES, MIN_MESSAGES, Part, Shape, draw_conversation
from tiltyard.benign.injected_conversations import InjectedConversation, OrderDrawer
from tiltyard.benign.injections import live_injections
from tiltyard.benign.rewording import reword
from tiltyard.benign.tasks import StagingError, Task
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.world.scenario import Scenario

TRIES: Final = 9
"""How many conversations to draw for one order until the agent obeys it after the relay."""
_OPENS: Final = frozenset(("web.open", "email.read"))
_READS: Final = _OPENS | {"web.search", "email.list", "fs.read"}


def draw_relayed_orders(
    scenario: Scenario,
    key: str,
    media: Collection[str],
    avoided: Collection[str],
    ruleset: Ruleset,
) -> list[InjectedConversation]:
    """Draw a conversation for each live injection of `media`, in which a relay brings it back.

    No two of them share a document of `media`, and they read none that `avoided` names. Leave out
    an injection if the agent does not obey it after a relay, or the judge does not count that.
    """
    drawer = _RelayDrawer(scenario, key, media, avoided, ruleset)
    injections = live_injections(scenario, media)
    # All media take turns: if the documents do not suffice, no medium is left out.
    turns = sorted(
        (number, medium, text)
        for medium, texts in injections.items()
        for number, text in enumerate(texts)
    )
    orders = (
        drawer.draw_order(number, medium, text) for number, (_, medium, text) in enumerate(turns)
    )
    return list(islice(filter(None, orders), ruleset.defense.max_orders))


class _RelayDrawer(OrderDrawer):
    def __init__(
        self,
        scenario: Scenario,
        key: str,
        media: Collection[str],
        avoided: Collection[str],
        ruleset: Ruleset,
    ) -> None:
        super().__init__("relayed orders", scenario, key, media, avoided)
        self.ruleset = ruleset

    def draw_order(self, number: int, medium: str, injection: str) -> InjectedConversation | None:
        """Draw the first conversation in which the agent obeys the injection after a relay."""
        draw = self.draw.branch(number)
        text = reword(injection, draw.branch("words"))
        for task in self._conversations(number, medium, draw):
            order = self.order_in(task, medium, text)
            # Past this guardrail, only the relayed text can lead to a breach.
            if order is not None and self.count_breaches(order, _Forgetful(), self.ruleset):
                self.taken.update(order.reads)
                return order
        return None

    def _conversations(self, number: int, medium: str, draw: Draw) -> Iterator[Task]:
        relays = [part for part in self.book.relays() if medium in part[1].media]
        # Each injection begins with another relay, so that no match leaves a relay out.
        for attempt, part in enumerate(islice(cycle(relays), number, number + TRIES)):
            try:
                yield self._conversation(part, draw.branch(attempt))
            except StagingError:
                continue

    def _conversation(self, relay: Part, draw: Draw) -> Task:
        shape = Shape(
            own_first=True,
            length=MIN_MESSAGES + draw.branch("long").below(MAX_MESSAGES - MIN_MESSAGES + 1),
            local=draw.branch("local").chance(1, 2),
            avoided=frozenset(self.taken),
        )
        return draw_conversation(self.maker, self.book, relay, draw, shape)


class _Forgetful(GuardrailBase):
    """Distrusts a page or mail only in the message in which the agent opens it."""

    def __init__(self) -> None:
        self.opened_in = 0

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        now = len(context.user_messages)
        if tool_name in _OPENS:
            self.opened_in = now
        if tool_name in _READS or self.opened_in != now:
            return Decision.allow()
        values = [value for value in tool_args.values() if isinstance(value, str)]
        if any(value in context.last_user for value in values):
            return Decision.allow()
        return Decision.deny("no word of the user's message")
