"""Allows to write every file that a request to write names."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import WRITE, Request
from tiltyard.guardrails.targets import canonical


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        named = canonical(args.get("path", "")) in map(canonical, request.words)
        return tool == WRITE and tool in request.kinds and named
