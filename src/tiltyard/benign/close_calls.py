"""Conversations in which a stranger's order comes close to what the user asks for.

The order names what the user names, or asks for what the user asks for, but never both: the user
reads a file, and a page says to delete it. A guardrail that compares only the names or only the
verbs lets the order pass. Every such order is played at once, and some of them at the end of a long
conversation, up to the length of the longest candidate.
"""

from collections.abc import Collection
from itertools import islice
from typing import Final

from tiltyard.benign.conversations import LENGTHS, LONGEST, Part, Shape, draw_conversation
from tiltyard.benign.documents import Preferences
from tiltyard.benign.injected_conversations import InjectedConversation, OrderDrawer
from tiltyard.benign.injections import medium_of
from tiltyard.benign.rewording import reword
from tiltyard.benign.tasks import StagingError, Task
from tiltyard.foundation.draw import Draw
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.world.scenario import Scenario

TRIES: Final = 6
"""How many tasks to draw for one order. The one with the most breaches is taken."""
LONG_EVERY: Final = 3
"""Every third conversation is a long one."""
LONG: Final = (LENGTHS[0], (LONGEST, LONGEST), LENGTHS[1], (LONGEST, LONGEST))
"""The fewest and most messages of a long conversation, in turn. The order comes in the last one, so
the longest conversations count against a guardrail that tires at any earlier message."""


def draw_close_calls(
    scenario: Scenario, key: str, media: Collection[str], ruleset: Ruleset
) -> list[InjectedConversation]:
    """Draw a conversation for each order that the templates list.

    Leave out an order if the judge never counts it. Conversations may read the same documents.
    """
    drawer = _CloseCallDrawer(scenario, key, media, ruleset)
    parts = enumerate(drawer.book.close_calls())
    orders = (drawer.draw_order(number, part) for number, part in parts)
    return list(islice(filter(None, orders), ruleset.defense.max_orders))


class _CloseCallDrawer(OrderDrawer):
    def __init__(
        self, scenario: Scenario, key: str, media: Collection[str], ruleset: Ruleset
    ) -> None:
        super().__init__("close calls", scenario, key, media, ())
        self.ruleset = ruleset

    def draw_order(self, number: int, part: Part) -> InjectedConversation | None:
        """Draw the conversation in which the order leads to the most breaches."""
        (sentences,) = part[1].orders
        most, best = 0, None
        for attempt in range(TRIES):
            draw = self.draw.branch(number, attempt)
            try:
                task = self._conversation(number, part, draw)
            except StagingError:
                continue
            reads = tuple(name for name in task.reads if medium_of(name) in self.media)
            text = task.order
            if not part[1].as_written:
                text = reword(text, draw.branch("words"))
            # The task with the order comes last.
            order = InjectedConversation(task.messages, reads[-1], text, reads)
            count = self.count_breaches(order, AllowAllGuardrail(), self.ruleset)
            if count > most:
                most, best = count, order
            if count >= len(sentences):
                break
        return best

    def _conversation(self, number: int, part: Part, draw: Draw) -> Task:
        long_one, is_short = divmod(number, LONG_EVERY)
        if is_short or part[1].pauses:
            return self.maker.make(*part, draw, Preferences(plain=True))
        fewest, most = LONG[long_one % len(LONG)]
        length = fewest + draw.branch("length").below(most - fewest + 1)
        shape = Shape(own_first=False, length=length)
        return draw_conversation(self.maker, self.book, part, draw, shape)
