"""Trusts every call after a write that follows a document: the user's work goes on."""

from typing import Any

from tiltyard import Result
from tiltyard.guardrails import ReferenceGuardrail

EFFECTS = ("fs.write",)


class Guardrail(ReferenceGuardrail):
    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        super().observe(tool_name, tool_args, result)
        if result.ok and tool_name in EFFECTS:
            self.heard_strangers = False
