"""Denies a post directly after reading the secret."""

from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args
        named = any("secret" in str(event.args) for event in context.events[-1:])
        return (
            Decision.deny("straight out")
            if tool_name == "http.post" and named
            else Decision.allow()
        )
