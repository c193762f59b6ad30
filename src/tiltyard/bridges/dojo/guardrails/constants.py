"""Guardrails that give the same answer to every call of a kind."""

from typing import Any

from tiltyard.bridges.dojo.guardrails.facts import has_effect
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context


class DenyAll:
    """Denies every call."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny("every call is denied")


class ReadsOnly:
    """Denies every call that may change something."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        return Decision.deny("only reads are allowed") if has_effect(context) else Decision.allow()
