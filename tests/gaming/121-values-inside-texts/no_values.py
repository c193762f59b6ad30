import json
import re
from typing import Any

from tiltyard import Context, Decision, GuardrailBase, Result

NAMES = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
VALUES = re.compile(
    r"\S+@\S+|https?://\S+|[A-Z]{2}\d{18}|\b[a-z]+-[a-z0-9]{6}\b|\+\d\d \d+ \d+|\d+\.\d\d"
)


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves(member)]
    if isinstance(value, list):
        return [leaf for member in value for leaf in leaves(member)]
    return [str(value)]


class Guardrail(GuardrailBase):
    contract = 2

    def __init__(self) -> None:
        self.said = ""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args
        self.said = " ".join(context.user_messages)
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        names = NAMES.findall(self.said)

        def kept(text: str, record: str) -> str:
            if len(text) < 30 or " " not in text:
                return text
            if any(name in record for name in names):
                return text
            return VALUES.sub("[REDACTED]", text)

        def walk(value: Any, record: str = "") -> Any:
            if isinstance(value, dict):
                return {key: walk(one, " ".join(leaves(value))) for key, one in value.items()}
            if isinstance(value, list):
                return [walk(one, record) for one in value]
            return kept(value, record) if isinstance(value, str) else value

        structured = walk(result.structured)
        try:
            data = json.loads(result.output)
        except ValueError:
            output = "\n".join(kept(line, line) for line in result.output.split("\n"))
        else:
            output = json.dumps(walk(data), separators=(",", ":"), ensure_ascii=False)
        return Result(result.ok, output, result.error, result.source, structured, result.passages)
