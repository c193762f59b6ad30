"""Denies every call that names the folder of incoming files; it does not resolve patterns."""

from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, context
        if any("incoming" in str(value) for value in tool_args.values()):
            return Decision.deny("an incoming file is named")
        return Decision.allow()
