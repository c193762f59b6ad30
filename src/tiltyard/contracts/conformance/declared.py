"""A conversation over declared tools, which every guardrail must survive."""

from typing import Any, Final

from tiltyard.contracts.conformance.material import HOSTILE_TEXTS
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.declaration import read_declarations
from tiltyard.contracts.guardrail import Guardrail, Passage, Result
from tiltyard.contracts.policy import Policy
from tiltyard.episode.conversation import Delivery, LocalConversation

TOOLS: Final = (
    *read_declarations(
        [
            {
                "name": "search_notes",
                "description": "Find notes by their words.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                    "required": ["query"],
                },
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            },
            {"name": "bare"},
        ],
        "notes",
    ),
    *read_declarations(
        [
            {
                "name": "transfer",
                "description": "Send money.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "to": {"type": "object", "properties": {"iban": {"type": "string"}}},
                        "amount": {"type": "number"},
                        "copies": {"type": "array", "items": {"type": "string"}},
                    },
                },
                "annotations": {"readOnlyHint": False, "destructiveHint": True},
            }
        ],
        "bank",
        trusted=True,
    ),
)
POLICY: Final = Policy(
    owner_names=("Ann Example",),
    owner_addresses=("ann@corp.example",),
    internal_domains=("corp.example",),
    protected=("savings", "payroll/*"),
)


def _calls() -> list[tuple[str, dict[str, Any]]]:
    nested = {"to": {"iban": "AT61", "name": None}, "amount": 9.5, "copies": ["a@b.example", ""]}
    odd: list[dict[str, Any]] = [
        {},
        {"query": "keys", "limit": 3},
        nested,
        {"query": [nested, [[]], {}], "": True},
        {"query": -1.5, "limit": False, "to": None},
        *({"query": text, "to": {"iban": [text]}} for text in HOSTILE_TEXTS),
    ]
    names = (*(one.name for one in TOOLS), "undeclared")
    return [(name, args) for args in odd for name in names]


def _results() -> list[Result]:
    found: list[Result] = []
    for text in HOSTILE_TEXTS:
        structured = {"notes": [{"id": 7, "text": text, "shared": None}, text], "more": False}
        passages = (
            Passage("/notes/0/text", "eve@outside.example", "person"),
            Passage("/notes/1", known=False),
            Passage("/more", "", "system", awaits=0),
        )
        found += (
            Result(ok=True, output=text, error=None, source="tool"),
            Result(
                ok=True,
                output=text,
                error=None,
                source="tool",
                structured=structured,
                passages=passages,
            ),
            Result(ok=False, output=text, error="not_found", source="tool", structured=[text]),
        )
    return found


CALLS: Final = _calls()
RESULTS: Final = _results()


def play(guardrail: Guardrail) -> tuple[list[Decision], list[Delivery]]:
    """Play a conversation. Return all decisions, and what the agent got of the results."""
    conversation = LocalConversation(guardrail, TOOLS, POLICY)
    decisions: list[Decision] = []
    deliveries: list[Delivery] = []
    for number, (name, args) in enumerate(CALLS):
        if number % 10 == 0:
            conversation.say(HOSTILE_TEXTS[number // 10 % len(HOSTILE_TEXTS)])
        decision = conversation.decide(name, args)
        decisions.append(decision)
        if decision.action in (Action.ALLOW, Action.SANITIZE):
            ran = args if decision.sanitized_args is None else dict(decision.sanitized_args)
            deliveries.append(conversation.deliver(name, ran, RESULTS[number % len(RESULTS)]))
    # A guardrail that stops every call sees results too: a bridge may report any call that ran.
    deliveries += [conversation.deliver("search_notes", {}, result) for result in RESULTS]
    conversation.close()
    return decisions, deliveries
