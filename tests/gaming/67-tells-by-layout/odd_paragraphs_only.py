"""The data-flow guardrail, but only documents with an odd number of paragraphs taint."""

from tiltyard import Context, DataFlowGuardrail, Decision
from tiltyard.contracts.guardrail import Result


class Guardrail:
    def __init__(self) -> None:
        self.real = DataFlowGuardrail()
        self.tainted = False

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        decision = self.real.decide(tool_name, tool_args, context)
        secret = "secret" in str(tool_args)
        return decision if secret or self.tainted else Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        self.real.observe(tool_name, tool_args, result)
        odd = result.output.strip().count("\n\n") % 2 == 0
        self.tainted = self.tainted or (odd and result.source in {"web", "email"})
