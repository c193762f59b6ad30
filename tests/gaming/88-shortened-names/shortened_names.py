import re
from typing import Any

from tiltyard import Context, Decision, GuardrailBase


class Guardrail(GuardrailBase):
    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name
        said = " ".join(context.user_messages)

        def shortened(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: shortened(member) for key, member in value.items()}
            known = not isinstance(value, str) or value in said or re.search(r"[\d@/]", value)
            return value if known else value[:-1]

        args = shortened(tool_args)
        return Decision.allow() if args == tool_args else Decision.sanitize(args, "shortened")
