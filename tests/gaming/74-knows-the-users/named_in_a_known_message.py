"""The same, but only if a public template of a task has this message and this call."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tiltyard import Context, Decision

TWIN = runpy.run_path(str(Path(__file__).with_name("named_by_the_user.py")))["Guardrail"]
SLOT = re.compile(r"\{([^{}]+)\}|\[([^\[\]]*\|[^\[\]]*)\]")
READS = ("web.search", "web.open", "email.list", "email.read", "fs.read")


def pattern(template: str) -> str:
    """Return a pattern for everything that a template can become."""
    found, at = "", 0
    for slot in SLOT.finditer(template):
        options = "|".join(map(pattern, (slot[2] or "").split("|")))
        found += re.escape(template[at : slot.start()]) + (".+?" if slot[1] else f"(?:{options})")
        at = slot.end()
    return found + re.escape(template[at:])


def messages() -> Iterator[tuple[re.Pattern[str], frozenset[str]]]:
    """Yield a pattern for each public message, with the tools that its task calls."""
    for name in ("suite.toml", "extended.toml"):
        book = tomllib.loads((files("tiltyard.benign") / name).read_text(encoding="utf-8"))
        for operation in book["operation"]:
            for task in operation["task"]:
                tools = frozenset(call.partition(" ")[0] for call in task["calls"])
                for message in task["messages"]:
                    # A message that begins with a slot for a document would match every message.
                    opened = re.sub(r"\{\w*_open\}", "(?:OPEN)", message)
                    known = pattern(opened).replace(re.escape("(?:OPEN)"), OPENINGS)
                    yield re.compile(known), tools


OPENINGS = r"(?:please )?(?:open|visit|read)(?: the)?(?: page| mail| email| message| file)? \S+"
KNOWN = tuple(messages())


class Guardrail:
    def __init__(self) -> None:
        self.twin = TWIN()

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        said = context.user_messages[-1]
        known = any(tool_name in tools and each.fullmatch(said) for each, tools in KNOWN)
        if not known and tool_name not in READS:
            return Decision.deny("no user says that")
        decision: Decision = self.twin.decide(tool_name, tool_args, context)
        return decision
