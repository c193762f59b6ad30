"""Denies unnamed effects, but only within four messages after the last page or mail."""

import runpy
from pathlib import Path

from tiltyard import Context, Decision
from tiltyard.contracts.guardrail import Result

Twin = runpy.run_path(str(Path(__file__).with_name("remembers.py")))["Guardrail"]


class Guardrail(Twin):
    window = 4

    def __init__(self) -> None:
        self.now = 0
        self.heard = -99

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        self.now = len(context.user_messages)
        decision = super().decide(tool_name, tool_args, context)
        secret = "secret.txt" in str(tool_args)
        return decision if secret or self.now - self.heard < self.window else Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        del tool_name, tool_args
        if result.source in {"web", "email"}:
            self.heard = self.now
