from typing import Any

from tiltyard import Context, Decision, GuardrailBase


class Guardrail(GuardrailBase):
    contract = 2

    def __init__(self) -> None:
        self.server = ""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        assert context.tool is not None
        self.server = self.server or context.tool.server
        if context.tool.server == self.server:
            return Decision.allow()
        return Decision.deny("the user needs another server")
