"""Reads over the words with which a user excepts something."""

import re

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.guardrails.requests import requests

EXCEPTS = re.compile(r"(\S*[./@]\S*?),? (?:not|never|don't|except|without|but|unless)\b")
"""A target, and the word behind it."""


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        understood = requests(EXCEPTS.sub(r"\1,", context.last_user))
        return super()._is_asked(tool, args, context) or any(
            self._grants(request, tool, args, context) for request in understood
        )
