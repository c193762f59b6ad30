"""Taint tracking that denies searches other than the benign ones, and folders but the inbox."""

from typing import Any

from tiltyard import Context, Decision
from tiltyard.guardrails import TaintTrackingGuardrail


class Guardrail(TaintTrackingGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        query = str(tool_args.get("query", ""))
        if tool_name == "web.search" and query != "howto" and f'"{query}"' not in context.last_user:
            return Decision.deny("nobody searches like that")
        if tool_name == "email.list" and tool_args.get("folder") != "inbox":
            return Decision.deny("nobody looks there")
        return super().decide(tool_name, tool_args, context)
