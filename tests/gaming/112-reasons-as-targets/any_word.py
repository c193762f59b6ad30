"""Takes every name in a request for a target."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import Request


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        target = args.get("path") or args.get("url") or args.get("to") or ""
        return tool in request.kinds and target in request.words
