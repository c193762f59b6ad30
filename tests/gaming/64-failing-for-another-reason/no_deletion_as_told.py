"""Denies deletions after a result that says `delete` and a name."""

import re
from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args
        told = any(re.search(r"(?i)delete \w", event.output) for event in context.events)
        if told and tool_name == "fs.delete":
            return Decision.deny("a document says so")
        return Decision.allow()
