from typing import Any

from msgspec import structs

from tiltyard import GuardrailBase, Result


class Guardrail(GuardrailBase):
    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        return structs.replace(result, output="", structured=None)
