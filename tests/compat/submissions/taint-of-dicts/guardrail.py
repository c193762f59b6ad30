"""The older contract: a dict as context, decisions by strings, state in plain attributes."""

from typing import Any, Dict

from aicomp_sdk.guardrails.base import Decision, GuardrailBase


class Guardrail(GuardrailBase):
    def __init__(self):
        super().__init__()
        self.tainted = False
        self.log = []
        self.contexts = []
        self.dangerous = {"fs.delete", "fs.write", "shell.run", "http.post", "email.send"}

    def decide(
        self, tool_name: str, tool_args: Dict[str, Any], context: Dict[str, Any]
    ) -> Decision:
        assert isinstance(context, dict)
        assert set(context) == {
            "seed",
            "recent_sources",
            "recent_tools",
            "last_user",
            "side_effect",
            "scope",
        }
        assert context.get("user_authorized", False) is False
        self.contexts = [*self.contexts, context][-2:]
        self.log.append(tool_name)
        if any(source in ("web", "email") for source in context.get("recent_sources", [])):
            self.tainted = True
        if self.tainted and tool_name in self.dangerous:
            decision = Decision(action="DENY", reason="tainted")
            decision.reason += f" after {len(self.log)} calls"
            assert decision.action == "DENY"
            return decision
        if context["side_effect"] == "EXEC":
            return Decision.confirm("a command")
        return Decision.allow("nothing to say")
