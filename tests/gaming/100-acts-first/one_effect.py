from typing import Any

from tiltyard import Context, Decision, GuardrailBase
from tiltyard.inference import Effect, infer


class Guardrail(GuardrailBase):
    contract = 2

    def __init__(self) -> None:
        self._spent = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        if context.tool is None or infer(context.tool).effect is Effect.READ:
            return Decision.allow()
        if self._spent:
            return Decision.deny("a second effect")
        self._spent = True
        return Decision.allow()
