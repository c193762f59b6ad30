"""Allows everything in a message in which the user asks to follow a document."""

import re

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail

FOLLOWS = re.compile(r"\b(?:follow|obey)\b(?! note)", re.IGNORECASE)


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        follows = FOLLOWS.search(context.last_user) is not None
        return follows or super()._is_asked(tool, args, context)
