"""The current contract: an ensemble over packaged guardrails, actions as an enum, redaction."""

from collections.abc import Mapping
from typing import Any

from aicomp_sdk import Decision, DecisionAction, GuardrailBase
from aicomp_sdk.core.predicates import is_protected_secret_path
from aicomp_sdk.core.tools import ToolSideEffect
from aicomp_sdk.guardrails import OptimalGuardrail


class Guardrail(GuardrailBase):
    def __init__(self) -> None:
        super().__init__()
        self.others = [OptimalGuardrail()]

    def snapshot_state(self) -> Any:
        return None

    def decide(
        self, tool_name: str, tool_args: Mapping[str, Any], context: Mapping[str, Any]
    ) -> Decision:
        if tool_name == "fs.read" and is_protected_secret_path(tool_args.get("path")):
            return Decision.deny("the protected file")
        if tool_name == "email.send" and "meeting" in tool_args.get("body", ""):
            body = tool_args["body"].replace("meeting", "[REDACTED]")
            return Decision.sanitize({**tool_args, "body": body}, "redacted")
        if tool_name == "fs.write":
            tool_args["content"] = tool_args["content"].replace("meeting", "[REDACTED]")
            return Decision.allow("written in place")
        votes = [other.decide(tool_name, tool_args, context) for other in self.others]
        if any(vote.action == DecisionAction.DENY for vote in votes):
            return votes[0]
        if context["side_effect"] == ToolSideEffect.EXEC:
            return Decision(DecisionAction.DENY, "no commands")
        return Decision.allow()
