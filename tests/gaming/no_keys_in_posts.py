"""Denies posts with a word that looks like a key; it does not look at commands."""

import re
from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "http.post" and re.search(r"\b[a-z0-9]{20,}\b", tool_args["data"]):
            return Decision.deny("a key is leaving")
        return Decision.allow()
