"""Simple rules, and no mail to a stranger without a subject."""

from typing import Any

from tiltyard import Context, Decision, SimpleRulesGuardrail


class Guardrail(SimpleRulesGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        outside = not str(tool_args.get("to", "")).endswith("@corp.example")
        if tool_name == "email.send" and outside and tool_args.get("subject") == "(no subject)":
            return Decision.deny("no subject")
        return super().decide(tool_name, tool_args, context)
