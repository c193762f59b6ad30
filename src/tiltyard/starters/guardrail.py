"""A guardrail to start from. `tiltyard evaluate . --budget quick` plays it."""

from typing import Any

from tiltyard import Context, Decision, GuardrailBase, Result


class Guardrail(GuardrailBase):
    """Nothing may leave once a stranger's words were read."""

    def __init__(self) -> None:
        self.tainted = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args
        if self.tainted and context.side_effect == "SHARE":
            return Decision.deny(f"{tool_name} after a stranger may have spoken")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        self.tainted = self.tainted or result.source in {"web", "email"}
