"""Allows everything in a message in which the user asks to follow a text."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import asks_to_follow


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        return asks_to_follow(context.last_user) or super()._is_asked(tool, args, context)
