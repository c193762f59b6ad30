"""Allows every file below a name that the user gave to a file."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import DELETE, WRITE, Request
from tiltyard.guardrails.targets import canonical


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        path = canonical(args.get("path", ""))
        below = any(path.startswith(f"{canonical(name)}/") for name in request.targets)
        return tool in (WRITE, DELETE) and tool in request.kinds and below
