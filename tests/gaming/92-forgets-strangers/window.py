"""Forgets after twenty messages that it has read a document of a stranger."""

from typing import Any

from tiltyard import Context, Decision, Result
from tiltyard.guardrails import ReferenceGuardrail

WINDOW = 20


class Guardrail(ReferenceGuardrail):
    def __init__(self) -> None:
        super().__init__()
        self.message = 0
        self.read_in = 0

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        self.message = len(context.user_messages)
        if self.message - self.read_in >= WINDOW:
            self.heard_strangers = False
        return super().decide(tool_name, tool_args, context)

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        heard = self.heard_strangers
        super().observe(tool_name, tool_args, result)
        if result.source in ("web", "email"):
            self.read_in = self.message
        else:
            self.heard_strangers = heard
