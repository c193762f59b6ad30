import json
import re
from typing import Any

from tiltyard import Context, Decision, GuardrailBase, Result


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves(member)]
    return [str(value)]


def part(result: Result, path: str) -> str:
    place = re.fullmatch(r"#char=(\d+),(\d+)", path)
    if place:
        return result.output[int(place[1]) : int(place[2])]
    data = json.loads(result.output)
    for key in path.split("/")[1:]:
        data = data[int(key) if isinstance(data, list) else key]
    return json.dumps(data)


class Guardrail(GuardrailBase):
    contract = 2

    def __init__(self) -> None:
        self.strange: list[tuple[str, str]] = []

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        del tool_name, tool_args
        self.strange += [
            (passage.author, part(result, passage.path))
            for passage in result.passages
            if passage.by == "person"
        ]

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name
        said = " ".join(context.user_messages).lower()
        for value in leaves(tool_args):
            for author, text in self.strange:
                first = author.partition("@")[0].partition(".")[0].lower()
                if value in text and value.lower() not in said and first not in said:
                    return Decision.deny("a stranger wrote this")
        return Decision.allow()
