"""A guardrail that tells what it knows: the denial of `recall` says what it heard and saw."""

import json
import threading
from typing import Any

from tiltyard import Context, Decision, Result


class Guardrail:
    contract = 2

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if tool_name == "recall":
            declared = sorted(tool.name for tool in context.tools)
            knows = {"said": context.user_messages, "seen": sorted(self.seen), "tools": declared}
            return Decision.deny(json.dumps(knows))
        if tool_name == "send_mail":
            return Decision.deny("no mail today")
        if tool_name == "save_note" and "text" in tool_args:
            return Decision.sanitize({**tool_args, "text": "[REDACTED]"}, "less")
        if tool_name == "break_it":
            raise ValueError("boom")
        if tool_name == "ask_first":
            return Decision.confirm("is it right?")
        if tool_name == "hang":
            threading.Event().wait(60)
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result | None:
        del tool_args
        self.seen.append([tool_name, result.output])
        if "uncheckable" in result.output:
            raise ValueError("cannot look")
        if "secret" in result.output:
            less = result.output.replace("secret", "[REDACTED]")
            return Result(result.ok, less, result.error, result.source)
        return None
