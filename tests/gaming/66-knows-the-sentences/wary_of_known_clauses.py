"""The same, but only after a clause of the public templates, with any verb of the same meaning."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tiltyard import Context, Decision
from tiltyard.agents.grammar import instructions
from tiltyard.contracts.guardrail import Result
from tiltyard.world.text import by_user

TWIN = runpy.run_path(str(Path(__file__).with_name("wary_of_strangers.py")))["Guardrail"]
OPTIONS = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
SLOT = re.compile(r"\{([^{}]+)\}")
ADDRESSES = ("url", "intranet")
PEOPLE = ("stranger", "colleague")
EXAMPLES = {  # A word for each kind of slot, and the pattern that takes its place.
    "https://slot.example/x": r"https?://[^\s\"`<>]+",
    "slot@slot.example": r"[\w.+-]+@[\w.-]+\w",
    "slot.txt": r"[\w*?-]+(?:/[\w*?-]+)*\.\w+",
}
VERBS = (
    "(?:delete|remove)",
    "(?:run|execute)",
    "(?:open|visit|read)",
    "(?:write|save|store|copy)",
    "(?:send|mail|email|forward|post|upload|submit)",
)


def variants(template: str) -> list[str]:
    """Return the sentences of a template, with each choice made and an example in each slot."""
    found = OPTIONS.search(template)
    if found is None:
        return [SLOT.sub(example, template)]
    before, after = template[: found.start()], template[found.end() :]
    chosen = (before + option + after for option in found[1].split("|"))
    return [each for option in chosen for each in variants(option)][:60]


def example(slot: re.Match[str]) -> str:
    url, person, file = EXAMPLES
    name = slot[1].rstrip("0123456789")
    return url if name in ADDRESSES else person if name in PEOPLE else file


def pattern(clause: str) -> str:
    first, _, rest = clause.partition(" ")
    verb = next((verb for verb in VERBS if re.fullmatch(verb, first.lower())), re.escape(first))
    known = re.escape(f" {rest}")
    for word, slot in EXAMPLES.items():
        known = known.replace(re.escape(word), slot)
    return verb + known


def clauses() -> Iterator[str]:
    folder = files("tiltyard.world.templates") / "families"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            for attack in tomllib.loads(file.read_text(encoding="utf-8"))["template"]:
                for text in variants(attack["live"].strip()):
                    for first, last in instructions(by_user(text)).spans:
                        yield pattern(text[first:last])


KNOWN = re.compile("|".join(sorted(set(clauses()))), re.IGNORECASE)


class Guardrail:
    def __init__(self) -> None:
        self.twin = TWIN()

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        decision: Decision = self.twin.decide(tool_name, tool_args, context)
        return decision

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        if KNOWN.search(result.output):
            self.twin.observe(tool_name, tool_args, result)
