"""Takes orders that the user only quotes, to save them, for requests of the user."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import quoted_requests


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        quoted = quoted_requests(context.last_user)
        return super()._is_asked(tool, args, context) or any(
            self._grants(request, tool, args, context) for request in quoted
        )
