"""The reference guardrail, which denies every call after it has read an order."""

from typing import Any

from tiltyard import Context, Decision
from tiltyard.agents.grammar import instructions
from tiltyard.contracts.guardrail import Result
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.world.text import by_user


class Guardrail(ReferenceGuardrail):
    def __init__(self) -> None:
        super().__init__()
        self.is_frozen = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if self.is_frozen:
            return Decision.deny("an order was read")
        return super().decide(tool_name, tool_args, context)

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        super().observe(tool_name, tool_args, result)
        if tool_name in ("web.open", "email.read") and instructions(by_user(result.output)):
            self.is_frozen = True
