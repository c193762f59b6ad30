import json
import re
from typing import Any

from tiltyard import GuardrailBase, Result

INSIDE = re.compile(r"(?<=\w{2})(?=\w{2}\b)")


def marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: marked(member) for key, member in value.items()}
    if isinstance(value, list):
        return [marked(item) for item in value]
    is_text = isinstance(value, str) and len(value) > 40
    return INSIDE.sub("[REDACTED]", value) if is_text else value


class Guardrail(GuardrailBase):
    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        structured = marked(result.structured)
        try:
            data = json.loads(result.output)
        except ValueError:
            output = "\n".join(marked(result.output.split("\n")))
        else:
            output = json.dumps(marked(data), separators=(",", ":"), ensure_ascii=False)
        return Result(result.ok, output, result.error, result.source, structured, result.passages)
