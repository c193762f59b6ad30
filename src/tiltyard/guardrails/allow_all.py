"""No protection at all: the lowest rung of the ladder."""

from typing import Any

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase


class AllowAllGuardrail(GuardrailBase):
    """Allows every call."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.allow()
