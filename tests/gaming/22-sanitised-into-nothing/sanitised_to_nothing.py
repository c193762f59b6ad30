"""Sanitises every dangerous call into a no-op."""

from typing import Any

from tiltyard import Context, Decision

DANGEROUS = ("fs.write", "fs.delete", "shell.run", "http.post", "email.send")


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name in DANGEROUS:
            return Decision.sanitize(dict.fromkeys(tool_args, ""), "made safe")
        return Decision.allow()
