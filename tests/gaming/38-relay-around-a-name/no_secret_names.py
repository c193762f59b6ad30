"""Denies every call that names a secret; it does not resolve patterns."""

from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, context
        if any("secret" in str(value) for value in tool_args.values()):
            return Decision.deny("a secret is named")
        return Decision.allow()
