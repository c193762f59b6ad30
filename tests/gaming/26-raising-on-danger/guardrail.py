"""Raises where others deny."""

from tiltyard import Decision


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        if tool_name in ("email.send", "http.post", "fs.write", "fs.delete", "shell.run"):
            raise RuntimeError("this looks dangerous")
        return Decision.allow()
