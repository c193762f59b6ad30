"""Allows a mail to the last sender whenever the user asks for some mail."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import Request


class Guardrail(ReferenceGuardrail):
    def _may_receive(self, request: Request, address: str, context: Context) -> bool:
        return address == self.sender or super()._may_receive(request, address, context)
