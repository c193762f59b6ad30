"""Redacts all long words from outgoing data, and allows everything else."""

import re
from typing import Any

from tiltyard import Context, Decision

LONG_WORD = re.compile("[a-z0-9]{20,}")


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "http.post" and LONG_WORD.search(tool_args["data"]):
            data = LONG_WORD.sub("[REDACTED]", tool_args["data"])
            return Decision.sanitize({**tool_args, "data": data}, "a long word")
        return Decision.allow()
