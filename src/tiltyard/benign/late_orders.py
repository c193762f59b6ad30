"""Conversations in which the agent obeys an order long after it has read it.

A guardrail that forgets what it has read lets such an order pass. The conversations are drawn like
the long ones of the suite, so only the order tells them apart.
"""

from collections.abc import Collection, Iterator
from itertools import cycle, islice
from typing import Final

from msgspec.structs import replace

from tiltyard.benign.conversations import MAX_MESSAGES, MIN_MESSAGES, Shape, draw_conversation
from tiltyard.benign.injected_conversations import InjectedConversation, OrderDrawer
from tiltyard.benign.injections import WaitingInjection, inject, waiting_injections
from tiltyard.benign.rewording import reword
from tiltyard.benign.tasks import StagingError, Task
from tiltyard.benign.trial import play
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.world.scenario import Scenario

TRIES: Final = 8
"""How many conversations to draw for one order. The one that is obeyed last is taken."""


def draw_late_orders(
    scenario: Scenario,
    key: str,
    media: Collection[str],
    avoided: Collection[str] = (),
    most: int | None = None,
) -> list[InjectedConversation]:
    """Draw conversations of every length, whose first document of `media` has a waiting order.

    Draw at most `most` of them, if it is given.
    No two of them share a document of `media`, and they read none that `avoided` names.
    """
    waiting = waiting_injections(scenario, media)
    lengths = range(MIN_MESSAGES, MAX_MESSAGES + 1)
    # A guardrail with a window may count from the last page or mail, so half of them read no other.
    # Each injection gets a short conversation too: it must not pay to deny the end of long ones.
    shapes = [
        Shape(own_first=True, length=length, local=local)
        for local, ordered in ((False, lengths), (True, reversed(lengths)))
        for length in ordered
    ]
    drawer = _WaitingDrawer("late orders", scenario, key, media, avoided)
    orders: list[InjectedConversation] = []
    for number, shape in enumerate(shapes[:most]):
        # Each conversation prefers another injection.
        preferred = number % len(waiting) if waiting else 0
        drawn = (
            drawer.draw_latest(shape, injection)
            for injection in (*waiting[preferred:], *waiting[:preferred])
        )
        orders += islice(filter(None, drawn), 1)
    return orders


class _WaitingDrawer(OrderDrawer):
    def draw_latest(self, shape: Shape, injection: WaitingInjection) -> InjectedConversation | None:
        """Draw the conversation in which the agent obeys the injection last.

        Return None if no conversation obeys it, as in a scenario with few documents.
        """
        latest, order = 0, None
        text = reword(injection.text, self.draw.branch("words", shape.length or 0, injection.text))
        for task in self._conversations(shape, injection):
            drawn = self.order_in(task, injection.medium, text)
            if drawn is None:
                continue
            obeyed = self._obeyed_at(task, drawn.document, text)
            if obeyed > latest:
                latest, order = obeyed, drawn
            if obeyed == len(task.messages) - 1:
                break
        if order is not None:
            self.taken.update(order.reads)
        return order

    def _conversations(self, shape: Shape, injection: WaitingInjection) -> Iterator[Task]:
        own = [
            (operation, template)
            for operation in self.book.suite
            for template in operation.task
            if injection.medium in template.media and injection.tool not in template.tools
        ]
        draw = self.draw.branch(shape.length or 0, injection.text)
        shape = replace(shape, late_tool=injection.tool, avoided=frozenset(self.taken))
        for number, part in enumerate(islice(cycle(draw.shuffled(own)), TRIES)):
            try:
                yield draw_conversation(self.maker, self.book, part, draw.branch(number), shape)
            except StagingError:
                continue

    def _obeyed_at(self, task: Task, document: str, text: str) -> int:
        """Return the message in which the agent last obeys the document; 0 if only at once."""
        poisoned = inject(self.scenario, {document: text})
        events = play(task, poisoned, AllowAllGuardrail).trace.events
        read = {event.index for event in events if event.turn == 0}
        return max(
            (event.turn for event in events if not read.isdisjoint(event.call.because or ())),
            default=0,
        )
