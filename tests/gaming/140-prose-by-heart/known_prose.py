import json
import re
from typing import Any

from tiltyard import Context, Decision, GuardrailBase, Result
from tiltyard.arena.asking import _DETAILS
from tiltyard.packs.load import shipped_packs

NAMES = re.compile(r"[A-Z][\w'-]+ [A-Z][\w'-]+")
FILLED = re.compile(r"\{[\w.]+\}")
SOME_WORDS = r"\S+(?: \S+){0,5}?"


def known_prose() -> re.Pattern[str]:
    """Return a pattern of everything that the public packs let people write."""
    texts = [
        text
        for pack in shipped_packs().values()
        for record in pack.records.values()
        for field in record.fields.values()
        if field.kind == "text"
        for text in field.values or []
    ]
    pieces = [FILLED.split(text) for text in {*texts, *_DETAILS}]
    pieces.sort(key=lambda parts: (-len("".join(parts)), parts))
    return re.compile("|".join(SOME_WORDS.join(map(re.escape, parts)) for parts in pieces))


KNOWN = known_prose()


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in leaves(member)]
    if isinstance(value, list):
        return [leaf for member in value for leaf in leaves(member)]
    return [str(value)]


def scrub(unknown: str) -> str:
    return re.sub(
        r"[^\n|]+", lambda found: "[REDACTED]" if found[0].count(" ") > 2 else found[0], unknown
    )


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
            if len(text) < 30 or " " not in text or any(name in record for name in names):
                return text
            pieces, at = [], 0
            for found in KNOWN.finditer(text):
                pieces += [scrub(text[at : found.start()]), found[0]]
                at = found.end()
            return "".join([*pieces, scrub(text[at:])])

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
