"""Balanced: after untrusted input, allow only calls on targets that the user named.

Half of the time is enough for more than a flag. The flag stays, but it does not forbid everything:
a call is allowed if the user wrote out its target, a file, an address or a command. Requests that
name no target, like "send it to me" or "reply", are denied. The price is known: some tasks of users
fail, and attackers do not get in.
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
"""The tools that can do harm, and the main argument of each."""
WAITS: Final = re.compile(r"\s*(?:when|whenever|after|once) you\b", re.IGNORECASE)
FOLLOWS: Final = re.compile(r"\bfollow\b", re.IGNORECASE)
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
        if any(is_named(target, message) for message in spoken_now(context)):
            return Decision.allow()
        return Decision.deny(f"the user did not name {target[:80]}")

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Distrust every result: even a file may contain text copied from a page."""
        del tool_name, tool_args
        self.heard_strangers = self.heard_strangers or result.ok


def spoken_now(context: Context) -> list[str]:
    """Return the last message, and the earlier ones that it may refer to."""
    *earlier, now = context.user_messages
    if FOLLOWS.search(now):
        return [now, *earlier]
    return [now, *(message for message in earlier if WAITS.match(message))]


def is_named(target: str, message: str) -> bool:
    """Tell whether a message contains the target as a word, with or without `.txt`."""
    spellings = {target, target.removesuffix(".txt")} - {""}
    return any(
        re.search(rf"(?<![\w./-]){re.escape(spelling)}(?![\w/-])", message)
        for spelling in spellings
    )
