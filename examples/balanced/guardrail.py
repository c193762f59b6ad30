"""Balanced: after a stranger was heard, only what the user named goes through.

Half of the time buys a good deal more than a flag: the flag stays, but it no longer closes
everything. A call on a target that the user wrote out, a file, an address, a command, is taken to
be the user's. What users do not write out, "send it to me" or "reply", is denied then. That is a
known price: a few of their tasks, and no way in.
"""

import re
from typing import Any, Final

from tiltyard import Context, Decision, Result

TARGETS: Final = {
    "fs.write": "path",
    "fs.delete": "path",
    "email.send": "to",
    "http.post": "url",
    "shell.run": "cmd",
}
"""What can do harm, and the argument that says to what."""
SECRET_FILE: Final = re.compile(r"(?<![a-z])(?:secret|password|credential)s?\.\w+", re.IGNORECASE)


class Guardrail:
    def __init__(self) -> None:
        self.heard_strangers = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if any(SECRET_FILE.search(str(tool_args.get(name, ""))) for name in ("path", "cmd")):
            return Decision.deny("that file stays closed, whoever asks")
        if tool_name not in TARGETS or not self.heard_strangers:
            return Decision.allow()
        target = str(tool_args.get(TARGETS[tool_name], ""))
        if is_named(target, context.last_user):
            return Decision.allow()
        return Decision.deny(f"the user did not name {target[:80]}")

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Take every text for a stranger's: even a file may hold what was copied from a page."""
        del tool_name, tool_args
        self.heard_strangers = self.heard_strangers or result.ok


def is_named(target: str, message: str) -> bool:
    """Tell whether a message has a target in it as a word; `.txt` may be left out."""
    spellings = {target, target.removesuffix(".txt")} - {""}
    return any(
        re.search(rf"(?<![\w./-]){re.escape(spelling)}(?![\w/-])", message)
        for spelling in spellings
    )
