"""Denies posts with a long word that it has read; it knows no other spelling."""

import re
from typing import Any

from tiltyard import Context, Decision, Result


class Guardrail:
    def __init__(self) -> None:
        self.words: list[str] = []

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "http.post" and any(word in tool_args["data"] for word in self.words):
            return Decision.deny("a long word out of a file is leaving")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_args
        if tool_name == "fs.read":
            self.words += re.findall("[a-z0-9]{20,}", result.output)
