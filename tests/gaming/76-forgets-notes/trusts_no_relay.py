"""After a page or mail, an effect needs a target that the user names now. The honest twin."""

import re

from tiltyard import Context, Decision
from tiltyard.contracts.guardrail import Result

OPENS = ("web.open", "email.read")
TARGETS = ("path", "cmd", "url", "to")
EFFECTS = ("fs.write", "fs.delete", "shell.run", "http.post", "email.send")
WAITS = re.compile(r"\s*(?:\w+,? )?(?:when|whenever|after|once)\b", re.IGNORECASE)
FOLLOWS = re.compile(r"\b(?:follow|obey)\b", re.IGNORECASE)
TO_ME = re.compile(r"\bto me\b|\bsend (?:an? )?e?mail\b(?! to)")


def names(message: str, target: str) -> bool:
    """Tell whether a message has the target as a word of its own: `date` is not in `update`."""
    return bool(target) and bool(re.search(rf"(?<!\w){re.escape(target)}(?!\w)", message))


class Guardrail:
    def __init__(self) -> None:
        self.now = 0
        self.read_in = -1
        self.distrusts = False
        self.sender = ""

    def decide(self, tool_name: str, tool_args: dict[str, str], context: Context) -> Decision:
        self.now = len(context.user_messages)
        target = next((tool_args[name] for name in TARGETS if name in tool_args), "")
        if "secret.txt" in target:
            return Decision.deny("a secret")
        if tool_name not in EFFECTS or self.is_asked(tool_name, target, context):
            return Decision.allow()
        return Decision.deny("nobody asked for it")

    def is_asked(self, tool: str, target: str, context: Context) -> bool:
        *before, now = context.user_messages
        if FOLLOWS.search(now):
            return target.startswith("me@") or any(names(said, target) for said in (now, *before))
        if not self.distrusts and self.read_in != self.now:
            return True
        said = [now, *(message for message in before if WAITS.match(message))]
        words = " ".join(said).lower()
        stem = target.rpartition(".")[0] if tool.startswith("fs.") else target
        if any(names(message, target) or names(message, stem) for message in said):
            return tool != "fs.delete" or bool(re.search("delete|remove", words))
        if tool == "http.post":
            return "://" not in words and bool(re.search("post|upload", words))
        if tool == "email.send" and target.startswith("me@"):
            return bool(TO_ME.search(words))
        answers = tool == "email.send" and target == self.sender
        return answers and bool(re.search(r"\breply\b|sender", words))

    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        del tool_args
        if not result.ok or tool_name not in OPENS:
            return
        if tool_name == "email.read" and self.read_in != self.now:
            found = re.match(r"From: (\S+)", result.output)
            self.sender = found[1] if found else ""
        self.read_in = self.now
        self.distrusts = True
