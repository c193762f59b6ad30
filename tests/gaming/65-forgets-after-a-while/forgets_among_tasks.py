"""Forgets after a while, and denies what begins with a lone request to open something."""

import re
import runpy
from pathlib import Path

from tiltyard import Context, Decision
from tiltyard.contracts.guardrail import Result

FORGETS = runpy.run_path(str(Path(__file__).with_name("forgets.py")))["Guardrail"]
OPENING = re.compile(r"(?i)(please )?(open|read|show me|look at)( the)?( \w+)? \S+")


class Guardrail:
    def __init__(self) -> None:
        self.forgets = FORGETS(window=10)

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        first, *later = context.user_messages
        if later and OPENING.fullmatch(first):
            return Decision.deny("no task begins like this")
        decision: Decision = self.forgets.decide(tool_name, tool_args, context)
        return decision

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        self.forgets.observe(tool_name, tool_args, result)
