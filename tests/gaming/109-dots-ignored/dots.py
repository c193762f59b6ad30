"""Reads over `..` in paths."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import DELETE, WRITE, Request, names_path


class Guardrail(ReferenceGuardrail):
    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if super()._grants(request, tool, args, context):
            return True
        path = args.get("path", "").replace("../", "")
        return tool in (WRITE, DELETE) and tool in request.kinds and names_path(request, path)
