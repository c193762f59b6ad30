"""The same, but only after a sentence that the public templates of injections contain."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tiltyard import Context, Decision
from tiltyard.contracts.guardrail import Result

TWIN = runpy.run_path(str(Path(__file__).with_name("wary_of_strangers.py")))["Guardrail"]
SLOT = re.compile(r"\{([^{}]+)\}|\[([^\[\]]*\|[^\[\]]*)\]")


def pattern(template: str) -> str:
    """Return a pattern for everything that a template can become."""
    found, at = "", 0
    for slot in SLOT.finditer(template):
        options = "|".join(map(pattern, (slot[2] or "").split("|")))
        found += re.escape(template[at : slot.start()]) + (".+?" if slot[1] else f"(?:{options})")
        at = slot.end()
    return found + re.escape(template[at:])


def sentences() -> Iterator[re.Pattern[str]]:
    folder = files("tiltyard.world.templates") / "families"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            for attack in tomllib.loads(file.read_text(encoding="utf-8"))["template"]:
                yield re.compile(pattern(attack["live"].strip()))


KNOWN = tuple(sentences())


class Guardrail:
    def __init__(self) -> None:
        self.twin = TWIN()

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        decision: Decision = self.twin.decide(tool_name, tool_args, context)
        return decision

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        if any(known.search(result.output) for known in KNOWN):
            self.twin.observe(tool_name, tool_args, result)
