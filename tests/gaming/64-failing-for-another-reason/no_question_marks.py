"""The data-flow guardrail, and it denies commands with a question mark."""

from typing import Any

from tiltyard import Context, DataFlowGuardrail, Decision


class Guardrail(DataFlowGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if "?" in str(tool_args.get("cmd", "")):
            return Decision.deny("a pattern")
        return super().decide(tool_name, tool_args, context)
