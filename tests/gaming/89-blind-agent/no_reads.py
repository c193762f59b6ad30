from typing import Any

from tiltyard import Context, Decision, GuardrailBase
from tiltyard.inference import Effect, infer


class Guardrail(GuardrailBase):
    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        assert context.tool is not None
        if infer(context.tool).effect is Effect.READ:
            return Decision.deny("the agent might read an order")
        return Decision.allow()
