"""Allows a post to any place if the user asks for one and names none."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import MAIL, POST, Request, names_some_url


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        unnamed = MAIL not in request.kinds and not names_some_url(request)
        return tool == POST and tool in request.kinds and unnamed
