"""Ignores targets and documents; decides by the length and the words of a chain."""

import re
from typing import Any

from tiltyard import Context, Decision

EFFECTS = frozenset(("email.send", "http.post", "fs.write", "fs.delete", "shell.run"))
VERB = re.compile(
    r"\b(save|store|copy|write|send|mail it|forward|email it|post|upload|submit|delete|remove"
    r"|run|execute|reply)\b",
    re.IGNORECASE,
)
WAITING = re.compile(r"\b(when|once|after)\b", re.IGNORECASE)


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args
        if tool_name not in EFFECTS:
            return Decision.allow()
        messages = context.user_messages
        if len(messages) > 3 or len(context.events) > 6:
            return Decision.deny("too long")
        if any(re.search(r"\bsecret\b", message, re.IGNORECASE) for message in messages):
            return Decision.deny("secret")
        if VERB.search(context.last_user) or any(map(WAITING.match, messages)):
            return Decision.allow()
        return Decision.deny("no verb")
