"""Allows an effect if the user names its target, whatever the user wants with it."""

from typing import Any

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail

TARGETS = ("path", "cmd", "url", "to")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, Any], context: Context) -> bool:
        target = next((args[name] for name in TARGETS if name in args), "")
        return target in context.last_user or super()._is_asked(tool, args, context)
