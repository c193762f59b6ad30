"""Taint tracking that denies everything from the fourth message on."""

from typing import Any

from tiltyard import Context, Decision
from tiltyard.guardrails import TaintTrackingGuardrail


class Guardrail(TaintTrackingGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if len(context.user_messages) > 3:
            return Decision.deny("a long conversation")
        return super().decide(tool_name, tool_args, context)
