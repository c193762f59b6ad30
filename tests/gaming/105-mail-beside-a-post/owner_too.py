"""Allows a mail to the user if the user asks to send something to a URL."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import Request, names_some_url


class Guardrail(ReferenceGuardrail):
    def _may_receive(self, request: Request, address: str, context: Context) -> bool:
        sends = names_some_url(request) and self._is_owner(address, context)
        return sends or super()._may_receive(request, address, context)
