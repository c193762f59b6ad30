"""Allows every deletion and every command in a message that asks for one."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        wanted = {kind for request in requests(context.last_user) for kind in request.kinds}
        known = tool in ("fs.delete", "shell.run") and tool in wanted
        return known or super()._is_asked(tool, args, context)
