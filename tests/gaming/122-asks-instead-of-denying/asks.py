from typing import Any

from tiltyard import Action, Context, Decision
from tiltyard.guardrails.declared import DeclaredGuardrail


class Guardrail(DeclaredGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        decision = super().decide(tool_name, tool_args, context)
        if decision.action is Action.DENY:
            return Decision.confirm("Do you want this?")
        return decision
