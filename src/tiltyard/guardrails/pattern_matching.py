"""Search for known phrases in calls and in results, as a web application firewall does.

This guardrail adds typical phrases of injections to the simple rules. If a text contains an order,
the target of the order becomes suspicious: the address to mail to, the file to write, the command
to run. The guardrail misses encoded orders and orders in several pieces.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.simple_rules import broken_rule, is_named, target_of

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


class PatternMatchingGuardrail(GuardrailBase):
    """Denies calls that break a rule, and calls that a document ordered in known phrases."""

    def __init__(self) -> None:
        self.suspects: tuple[str, ...] = ()

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        broken = broken_rule(tool_name, tool_args, context)
        if broken:
            return Decision.deny(broken)
        target = target_of(tool_name, tool_args)
        if (
            tool_name in GUARDED
            and target in self.suspects
            and not is_named(target, context.user_messages)
        ):
            return Decision.deny(f"{target} stands in an order that was read")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember the targets of the orders in a result."""
        del tool_name, tool_args
        if result.ok:
            found = [target for order in ORDERS for target in order.findall(result.output)]
            fresh = [target for target in dict.fromkeys(found) if target not in self.suspects]
            if fresh:
                self.suspects = (*self.suspects, *fresh)[-MAX_SUSPECTS:]
