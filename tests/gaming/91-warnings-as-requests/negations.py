"""Takes what the user forbids for a request of the user."""

import re

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests

IGNORED = re.compile(r"\b(?:do not|don.t|never|must not|should not)\s+", re.IGNORECASE)


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        understood = requests(IGNORED.sub("", context.last_user))
        return super()._is_asked(tool, args, context) or any(
            self._grants(request, tool, args, context) for request in understood
        )
