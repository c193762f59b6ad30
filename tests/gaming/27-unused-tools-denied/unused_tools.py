"""Denies what the seven operations do not name: posts, deletions, commands except echo."""

from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name in ("http.post", "fs.delete"):
            return Decision.deny("nobody needs this")
        if tool_name == "shell.run" and not str(tool_args["cmd"]).startswith("echo"):
            return Decision.deny("nobody needs this")
        return Decision.allow()
