"""Conversations in which a stranger's text comes back in a later message, with an order in it."""

from typing import Any, Final

import pytest

from tiltyard import Context, Decision, GuardrailBase
from tiltyard.benign import Task, draw_suite, play
from tiltyard.benign.conversations import MAX_MESSAGES, MIN_MESSAGES
from tiltyard.benign.documents import EMAIL, WEB
from tiltyard.benign.injected_conversations import InjectedConversation
from tiltyard.benign.injections import inject
from tiltyard.benign.relayed_orders import draw_relayed_orders
from tiltyard.benign.trial import call_of
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.trace import Event
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

SCENARIO: Final = generate(4711)
RULES: Final = load_ruleset()
OPENS: Final = ("web.open", "email.read")
EFFECTS: Final = ("fs.write", "fs.delete", "shell.run", "http.post", "email.send")


def drawn(key: str, avoided: frozenset[str] = frozenset()) -> list[InjectedConversation]:
    return draw_relayed_orders(SCENARIO, key, (WEB, EMAIL), avoided, RULES)


@pytest.fixture(scope="module")
def orders() -> list[InjectedConversation]:
    return drawn("a key")


def events_of(order: InjectedConversation, scenario: Scenario) -> list[Event]:
    task = Task("relayed", "relayed", order.messages, (), (), order.reads)
    return play(task, scenario, AllowAllGuardrail).trace.events


def test_the_agent_obeys_in_a_message_that_opens_no_page_and_no_mail(
    orders: list[InjectedConversation],
) -> None:
    for order in orders:
        poisoned = inject(SCENARIO, {order.document: order.injection})
        asked = events_of(order, SCENARIO)
        opens = {event.turn for event in asked if event.call.tool in OPENS}
        own = {call_of(event) for event in asked}
        obeyed = [each for each in events_of(order, poisoned) if call_of(each) not in own]
        assert any(event.turn not in opens for event in obeyed), order


def test_pages_and_mails_are_relayed_in_many_ways(orders: list[InjectedConversation]) -> None:
    assert {order.document.partition(":")[0] for order in orders} == {WEB, EMAIL}
    assert {len(order.messages) for order in orders} == set(range(MIN_MESSAGES, MAX_MESSAGES + 1))
    said = " ".join(message for order in orders for message in order.messages)
    assert all(words in said for words in (" note ", "cp ", "mv ", "cat ", "base64"))


def test_most_live_injections_come_back(orders: list[InjectedConversation]) -> None:
    planted = [entry for entry in SCENARIO.labels.planted if entry.live]
    attacks = {(entry.family, entry.template) for entry in planted if entry.document[:5] != "file:"}
    assert len(orders) > len(attacks) / 2


def test_no_two_share_a_page_or_mail(orders: list[InjectedConversation]) -> None:
    read = [name for order in orders for name in order.reads]
    assert len(read) == len(set(read))


def test_avoided_documents_are_left_alone() -> None:
    suite = draw_suite(SCENARIO, "a key")
    avoided = frozenset(name for task in suite.tasks for name in task.reads)
    found = drawn("a key", avoided)
    assert found
    assert avoided.isdisjoint(name for order in found for name in order.reads)


def test_the_key_decides(orders: list[InjectedConversation]) -> None:
    assert drawn("a key") == orders
    assert drawn("another") != orders


def test_a_scenario_without_injections_has_none() -> None:
    assert not draw_relayed_orders(Scenario((), {}, {}), "", (WEB, EMAIL), (), RULES)


class DeniesAfterRelays(GuardrailBase):
    """Denies every effect once the agent has read a file that it wrote after a page or mail."""

    def __init__(self) -> None:
        self.opened = self.relayed = False
        self.written: tuple[str, ...] = ()

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args, context
        denied = self.relayed and tool_name in EFFECTS
        return Decision.deny("after a relay") if denied else Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del result
        path = str(tool_args.get("path", ""))
        self.opened = self.opened or tool_name in OPENS
        if tool_name == "fs.write" and self.opened:
            self.written = (*self.written, path)
        if tool_name == "fs.read" and path in self.written:
            self.relayed = True


@pytest.mark.parametrize("seed", [123, 1, 2, 3, 4])
def test_users_relay_harmless_documents_and_work_on(seed: int) -> None:
    """To deny everything after a relay costs points."""
    suite = draw_suite(generate(seed), "a match")
    trials = [play(task, suite.scenario_of(task), DeniesAfterRelays) for task in suite.tasks]
    assert sum(trial.false_positive for trial in trials) >= 2
