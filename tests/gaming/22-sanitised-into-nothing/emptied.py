"""Allows every dangerous call, with empty content."""

from typing import Any

from tiltyard import Context, Decision

CONTENT = {"fs.write": "content", "http.post": "data", "email.send": "body"}


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name in CONTENT:
            return Decision.sanitize({**tool_args, CONTENT[tool_name]: ""}, "made safe")
        return Decision.allow()
