"""Reads over the quotation marks around a single word."""

import re

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests

QUOTED = re.compile(r"[\"“](\w+)[\"”]")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        understood = requests(QUOTED.sub(r"\1", context.last_user))
        return super()._is_asked(tool, args, context) or any(
            self._grants(request, tool, args, context) for request in understood
        )
