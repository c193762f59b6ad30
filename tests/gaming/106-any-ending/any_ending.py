"""Takes a file for the one that the user named if it only has a further ending."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import DELETE, WRITE, Request


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        longer = any(args.get("path", "").startswith(f"{name}.") for name in request.targets)
        return tool in (WRITE, DELETE) and tool in request.kinds and longer
