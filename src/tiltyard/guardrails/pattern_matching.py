"""Search for known phrases in calls and in results, as a web application firewall does.

This guardrail adds typical phrases of injections to the simple rules. If a text contains an order,
the target of the order becomes suspicious: the address to mail to, the sender to answer, the file
to write, the command to run. The guardrail misses encoded orders and orders in several pieces.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.simple_rules import (
    TO_SENDER,
    added,
    broken_rule,
    is_named,
    spoken_now,
    target_of,
)

MAX_SUSPECTS: Final = 64
GUARDED: Final = frozenset(("fs.write", "fs.delete", "email.send", "http.post", "shell.run"))

ORDERS: Final = (
    re.compile(
        r"\b(?:mail|email|send|forward)\b[^!?\n]*?\bto\s+([\w.+-]+@[\w.-]+\w)", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:post|upload|submit|send)\b[^!?\n]*?\bto\s+(https?://[^\s\"`<>]+)", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:write|save|store|copy)\b[^!?\n]*?\b(?:to|into|in|as|file)\s+([\w-]+(?:/[\w-]+)*\.\w+)",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:run|execute)\s+(?:the\s+command\s+)?`([^`\n]+)`", re.IGNORECASE),
    re.compile(
        r"\b(?:delete|remove)\s+(?:the\s+)?(?:file\s+)?([\w-]+(?:/[\w-]+)*\.\w+)", re.IGNORECASE
    ),
)

WITHOUT_ENDING: Final = re.compile(
    r"\b(?:write|save|store|copy)\b[^!?\n]*?\bfile\s+([\w-]+)(?![\w/-]|\.\w)", re.IGNORECASE
)
"""An order that names a file without its ending, which is `.txt`."""

REPLY: Final = re.compile(r"\breply\b[^.!?\n]*?\bwith\b", re.IGNORECASE)
"""An order to answer a mail: its target is the sender."""
SENDER: Final = re.compile(r"\A[^\n]*?([\w.+-]+@[\w.-]+\w)")


class PatternMatchingGuardrail(GuardrailBase):
    """Denies calls that break a rule, and calls that a document ordered in known phrases."""

    def __init__(self) -> None:
        self.suspects: tuple[str, ...] = ()
        """Targets of the orders that were read."""
        self.senders: tuple[str, ...] = ()
        """Senders of mails that order a reply."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        broken = broken_rule(tool_name, tool_args, context)
        if broken:
            return Decision.deny(broken)
        target = target_of(tool_name, tool_args)
        if tool_name not in GUARDED or is_named(target, spoken_now(context)):
            return Decision.allow()
        if target in self.suspects:
            return Decision.deny(f"{target} stands in an order that was read")
        if target in self.senders and not any(map(TO_SENDER.search, spoken_now(context))):
            return Decision.deny(f"{target} ordered a reply")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember the targets of the orders in a result."""
        del tool_args
        if not result.ok:
            return
        found = [target for order in ORDERS for target in order.findall(result.output)]
        found += (f"{name}.txt" for name in WITHOUT_ENDING.findall(result.output))
        self.suspects = added(self.suspects, found, MAX_SUSPECTS)
        if tool_name == "email.read" and REPLY.search(result.output):
            self.senders = added(self.senders, SENDER.findall(result.output), MAX_SUSPECTS)
