"""Taint tracking, and the one harmless command that injections used is denied."""

from typing import Any

from tiltyard import Context, Decision, TaintTrackingGuardrail


class Guardrail(TaintTrackingGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if tool_args.get("cmd") == "ls -l":
            return Decision.deny("a known command")
        return super().decide(tool_name, tool_args, context)
