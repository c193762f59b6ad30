"""Looks for whole plain secrets in outgoing data."""

import re
from typing import Any

from tiltyard import Context, Decision, Result


class Guardrail:
    def __init__(self) -> None:
        self.words: list[str] = []

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        data = tool_args.get("data", "")
        if tool_name == "http.post" and any(word in data for word in self.words):
            return Decision.deny("a long word out of a file is leaving")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_args
        if tool_name in ("fs.read", "shell.run"):
            self.words += re.findall("[a-z0-9]{24}", result.output)
