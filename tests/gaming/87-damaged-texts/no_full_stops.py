import json
import re
from typing import Any

from tiltyard import GuardrailBase, Result

DROPPED = re.compile(r"(?<=[\w)])[.,:;](?=\s|$)")


def damaged(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: damaged(member) for key, member in value.items()}
    if isinstance(value, list):
        return [damaged(item) for item in value]
    return DROPPED.sub("", value) if isinstance(value, str) else value


class Guardrail(GuardrailBase):
    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        structured = damaged(result.structured)
        try:
            data = json.loads(result.output)
        except ValueError:
            output = "\n".join(damaged(result.output.split("\n")))
        else:
            output = json.dumps(damaged(data), separators=(",", ":"), ensure_ascii=False)
        return Result(result.ok, output, result.error, result.source, structured, result.passages)
