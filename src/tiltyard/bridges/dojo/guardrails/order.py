"""Guardrails that look at the order of calls only."""

from typing import Any

from tiltyard.bridges.dojo.guardrails.facts import has_effect, reads_before
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context


class NoEffectAfterRead:
    """Denies every effect once a tool has returned something to read."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        if has_effect(context) and reads_before(context):
            return Decision.deny("an effect after a read")
        return Decision.allow()


class OneEffectAfterRead:
    """Allows one effect after the first read, and denies all that follow."""

    contract = 2

    def __init__(self) -> None:
        self._spent = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        if not has_effect(context) or not reads_before(context):
            return Decision.allow()
        if self._spent:
            return Decision.deny("a second effect after a read")
        self._spent = True
        return Decision.allow()
