"""Allows a delayed request before its occasion."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        waiting = (
            request
            for message in context.user_messages
            for request in requests(message)
            if request.occasion
        )
        return super()._is_asked(tool, args, context) or any(
            self._grants(request, tool, args, context) for request in waiting
        )
