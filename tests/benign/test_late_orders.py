"""Conversations in which the agent obeys an order long after it has read it."""

from typing import Final

import pytest

from tiltyard.benign import Task, draw_suite, play
from tiltyard.benign.conversations import MAX_MESSAGES, MIN_MESSAGES
from tiltyard.benign.documents import EMAIL, WEB
from tiltyard.benign.injected_conversations import InjectedConversation
from tiltyard.benign.injections import inject
from tiltyard.benign.late_orders import draw_late_orders
from tiltyard.benign.trial import call_of
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

SCENARIO: Final = generate(4711)


@pytest.fixture(scope="module")
def orders() -> list[InjectedConversation]:
    return draw_late_orders(SCENARIO, "a key", (WEB, EMAIL))


def obeyed_in(order: InjectedConversation, scenario: Scenario) -> set[int]:
    """Return the messages whose calls the scenario's injection causes."""
    task = Task("late", "late", order.messages, (), (), order.reads)
    clean, poisoned = (
        [(event.turn, call_of(event)) for event in play(task, each, AllowAllGuardrail).trace.events]
        for each in (SCENARIO, scenario)
    )
    return {turn for turn, call in poisoned if (turn, call) not in clean}


def test_every_order_fires_late_in_its_conversation(orders: list[InjectedConversation]) -> None:
    waited = [
        max(obeyed_in(order, inject(SCENARIO, {order.document: order.injection})), default=0)
        for order in orders
    ]
    assert all(waited)
    shares = [turn / (len(order.messages) - 1) for turn, order in zip(waited, orders, strict=True)]
    assert sum(share == 1 for share in shares) >= len(orders) / 2
    assert max(waited) >= MAX_MESSAGES - 2


def test_there_are_two_of_every_length(orders: list[InjectedConversation]) -> None:
    lengths = sorted(len(order.messages) for order in orders)
    assert lengths == sorted([*range(MIN_MESSAGES, MAX_MESSAGES + 1)] * 2)


def test_no_two_share_a_page_or_mail(orders: list[InjectedConversation]) -> None:
    read = [name for order in orders for name in order.reads]
    assert len(read) == len(set(read))


def test_avoided_documents_are_left_alone() -> None:
    suite = draw_suite(SCENARIO, "a key")
    avoided = {name for task in suite.tasks for name in task.reads}
    drawn = draw_late_orders(SCENARIO, "a key", (WEB, EMAIL), avoided)
    assert drawn
    assert avoided.isdisjoint(name for order in drawn for name in order.reads)


def test_the_key_decides(orders: list[InjectedConversation]) -> None:
    assert draw_late_orders(SCENARIO, "a key", (WEB, EMAIL)) == orders
    assert draw_late_orders(SCENARIO, "another", (WEB, EMAIL)) != orders


def test_a_scenario_without_waiting_orders_has_none() -> None:
    assert not draw_late_orders(Scenario((), {}, {}), "", (WEB, EMAIL))
