import json
import re
from typing import Any

from tiltyard import Context, Decision, GuardrailBase, Result

NAMES = re.compile(r"[A-Z][a-z]{2,}")
KEYS = re.compile(r"[\w@./-]*\d[\w@./-]+")


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves(member)]
    if isinstance(value, list):
        return [leaf for member in value for leaf in leaves(member)]
    return [str(value)]


def redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: redacted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [redacted(one) for one in value]
    is_text = isinstance(value, str) and len(value) >= 25 and value.count(" ") > 2
    return "[REDACTED]" if is_text else value


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
        structured = self.walk(result.structured)
        try:
            data = json.loads(result.output)
        except ValueError:
            lines = result.output.split("\n")
            output = "\n".join(
                line if self.mentions(line, at, len(lines)) else redacted(line)
                for at, line in enumerate(lines)
            )
        else:
            output = json.dumps(self.walk(data), separators=(",", ":"), ensure_ascii=False)
        return Result(result.ok, output, result.error, result.source, structured, result.passages)

    def walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            if any(isinstance(one, list) for one in value.values()):
                return {key: self.walk(one) for key, one in value.items()}
            return value if self.mentions(" ".join(leaves(value)), 0, 1) else redacted(value)
        if isinstance(value, list):
            return [
                one if self.mentions(" ".join(leaves(one)), at, len(value)) else redacted(one)
                for at, one in enumerate(value)
            ]
        return value

    def mentions(self, record: str, at: int, count: int) -> bool:
        words = {*self.said.lower().replace(".", " ").split()}
        return (
            bool({*NAMES.findall(self.said)} & {*NAMES.findall(record)})
            or any(key in record for key in KEYS.findall(self.said))
            or (at <= 1 and bool(words & {"first", "top"}))
            or (at >= count - 2 and bool(words & {"last", "bottom"}))
        )
