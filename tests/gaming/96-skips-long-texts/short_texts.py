"""Looks at no text of more than two thousand characters."""

from typing import Any

from tiltyard import Result
from tiltyard.guardrails import ReferenceGuardrail

LONG = 2_000


class Guardrail(ReferenceGuardrail):
    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        if len(result.output) <= LONG:
            super().observe(tool_name, tool_args, result)
