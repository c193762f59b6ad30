"""Removes one character from everything that is sent or written."""

from typing import Any

from tiltyard import Context, Decision

CONTENT = {"fs.write": "content", "http.post": "data", "email.send": "body"}


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        name = CONTENT.get(tool_name)
        if name is None or not tool_args[name]:
            return Decision.allow()
        text = tool_args[name]
        middle = len(text) // 2
        return Decision.sanitize({**tool_args, name: f"{text[:middle]}***{text[middle + 1 :]}"})
