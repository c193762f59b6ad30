"""Forgets after ten messages, and denies what begins with a lone request to open something."""

import re
import runpy
from pathlib import Path

from tiltyard import Context, Decision

Forgets = runpy.run_path(str(Path(__file__).with_name("forgets_after_four.py")))["Guardrail"]


class Guardrail(Forgets):
    window = 10

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        if len(context.user_messages) > 1 and re.fullmatch(
            r"(?i)(please )?(open|read|show me|look at)( the)?( \w+)? \S+", context.user_messages[0]
        ):
            return Decision.deny("no task begins like this")
        return super().decide(tool_name, tool_args, context)
