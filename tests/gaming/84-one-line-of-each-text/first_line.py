import json
from typing import Any

from tiltyard import GuardrailBase, Result


def shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shortened(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    return value.split("\n")[0] if isinstance(value, str) else value


class Guardrail(GuardrailBase):
    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        try:
            data = json.loads(result.output)
        except ValueError:
            lines = result.output.split("\n")
            kept = [line for line in lines if not line or ": " in line or " | " in line]
            output, structured = "\n".join(kept), result.structured
        else:
            output = json.dumps(shortened(data), separators=(",", ":"), ensure_ascii=False)
            structured = None if result.structured is None else shortened(result.structured)
        return Result(result.ok, output, result.error, result.source, structured, result.passages)
