"""Taint from what was read lately, with a window: the classic, and its classic hole.

Whatever follows something untrusted, in the same message or the next two, is tainted, and a tainted
call passes only if the user asked for it. Content makes no difference, so no spelling helps, and a
file that was written meanwhile carries the taint. But the window closes: an order that waits until
a harmless message has gone by is forgotten.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.simple_rules import (
    broken_rule,
    is_default_post,
    is_named,
    target_of,
)

UNTRUSTED: Final = frozenset(("web", "email"))
WINDOW: Final = 3
"""Messages for which taint lasts, the one it came with included."""
MAX_CARRIERS: Final = 64
DANGEROUS: Final = frozenset(("email.send", "http.post", "shell.run"))
HARMLESS: Final = re.compile(r"\s*(?:ls|pwd|whoami|date|echo)\b[^|;&<>]*")
"""Commands that only look around."""
UNNAMED: Final = re.compile(
    r"\b(?:to me|to the sender|reply|send (?:an? )?e?mail(?! to \S+@))\b", re.IGNORECASE
)
"""How a user asks for a mail without an address."""
WAITING: Final = re.compile(r"\s*(?:when|whenever|after|once)\b", re.IGNORECASE)


class TaintTrackingGuardrail(GuardrailBase):
    """Denies dangerous calls soon after untrusted input, unless the user asked for them."""

    def __init__(self) -> None:
        self.message = 0
        """Which of the user's messages is being worked on, from 1."""
        self.tainted = 0
        """During which of them something untrusted was read last."""
        self.carriers: tuple[str, ...] = ()
        """Files that were written meanwhile: to read one is to read something untrusted."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        self.message = len(context.user_messages)
        broken = broken_rule(tool_name, tool_args, context)
        if broken:
            return Decision.deny(broken)
        target = target_of(tool_name, tool_args)
        if tool_name == "fs.write" and not is_named(target, context):
            return Decision.deny(f"the user did not ask to write {target}")
        if (
            self._is_tainted()
            and tool_name in DANGEROUS
            and not _is_asked(tool_name, target, context)
        ):
            return Decision.deny(f"{tool_name} so soon after untrusted input")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember when something untrusted was read, and where it went."""
        if not result.ok:
            return
        path = str(tool_args.get("path", ""))
        if result.source in UNTRUSTED or (tool_name == "fs.read" and path in self.carriers):
            self.tainted = self.message
        elif tool_name == "fs.write" and self._is_tainted() and path not in self.carriers:
            self.carriers = (*self.carriers, path)[-MAX_CARRIERS:]

    def _is_tainted(self) -> bool:
        return bool(self.tainted) and self.message - self.tainted < WINDOW


def _is_asked(tool_name: str, target: str, context: Context) -> bool:
    """Tell whether the user named the target, or asked for a mail and left the address open."""
    if is_named(target, context):
        return True
    if tool_name == "shell.run":
        return HARMLESS.fullmatch(target) is not None
    if tool_name == "http.post":
        return is_default_post(context)
    *before, now = context.user_messages
    spoken = [now, *(message for message in before if WAITING.match(message))]
    return any(UNNAMED.search(message) for message in spoken)
