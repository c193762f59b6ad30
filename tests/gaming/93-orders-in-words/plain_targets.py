"""Distrusts only calls whose target stands in a document in plain letters."""

from typing import Any

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail

TARGETS = ("path", "url", "to", "cmd")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, Any], context: Context) -> bool:
        target = next((args[name] for name in TARGETS if name in args), "")
        read = any(target in event.output for event in context.events)
        return not read or super()._is_asked(tool, args, context)
