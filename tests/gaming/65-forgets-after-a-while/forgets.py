"""Denies unnamed effects, but only for some messages after the last page or mail."""

import runpy
from pathlib import Path

from tiltyard import Context, Decision
from tiltyard.contracts.guardrail import Result

TWIN = runpy.run_path(str(Path(__file__).with_name("remembers.py")))["Guardrail"]


class Guardrail:
    def __init__(self, window: int = 4) -> None:
        self.window = window
        self.twin = TWIN()
        self.now = 0
        self.heard = -99

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        self.now = len(context.user_messages)
        if "secret.txt" not in str(tool_args) and self.now - self.heard >= self.window:
            return Decision.allow()
        decision: Decision = self.twin.decide(tool_name, tool_args, context)
        return decision

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        del tool_name, tool_args
        if result.source in {"web", "email"}:
            self.heard = self.now
