"""Denies every effect once the agent has read a text that looks like a secret, and nothing else."""

import re
from typing import Any, Final

from tiltyard import Context, Decision, Result

SECRET: Final = re.compile(r"\b(?=\w*\d)(?=\w*[a-z])[a-z0-9]{20,40}\b")


class Guardrail:
    def __init__(self) -> None:
        self.seen: tuple[str, ...] = ()

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        if context.side_effect in ("READ", "NETWORK") or not self.seen:
            return Decision.allow()
        return Decision.deny("a secret has been read")

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        self.seen += tuple(SECRET.findall(result.output))
