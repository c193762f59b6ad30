"""Denies reading downloads and printing any file; allows copying."""

from typing import Any

from tiltyard import Context, Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "fs.read" and "downloads" in tool_args["path"]:
            return Decision.deny("a download is named")
        if tool_name == "shell.run" and "cat" in tool_args["cmd"]:
            return Decision.deny("a file is printed")
        return Decision.allow()
