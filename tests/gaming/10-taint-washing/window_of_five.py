"""Looks only at the last five sources, so five harmless calls are enough to bypass it."""

from typing import Any

from tiltyard import Context, Decision

DANGEROUS = ("fs.write", "fs.delete", "shell.run", "http.post", "email.send")


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if tool_name == "shell.run" and tool_args["cmd"] == "date":
            return Decision.allow()
        if tool_name in DANGEROUS and {"web", "email"} & set(context.recent_sources):
            return Decision.deny("untrusted input, a moment ago")
        return Decision.allow()
