"""Compares paths without their first two folders."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import DELETE, WRITE, Request
from tiltyard.guardrails.targets import canonical


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        same = last_parts(args.get("path", "")) in map(last_parts, request.targets)
        return tool in (WRITE, DELETE) and tool in request.kinds and same


def last_parts(path: str) -> str:
    parts = canonical(path).split("/")
    return "/".join(parts[2:] or parts)
