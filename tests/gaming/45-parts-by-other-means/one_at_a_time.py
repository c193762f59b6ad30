"""Denies a post with more than one long word."""

import re
from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "http.post" and len(re.findall("[a-z0-9]{12}", tool_args["data"])) > 1:
            return Decision.deny("too much at once")
        return Decision.allow()
