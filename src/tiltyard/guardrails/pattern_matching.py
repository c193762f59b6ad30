"""Search for known phrases in calls and in results, as a web application firewall does.

This guardrail adds typical phrases of injections to the simple rules. If a text contains an order,
the target of the order becomes suspicious: the address to mail to, the sender to answer, the file
to write, the command to run. A mail also needs a user who asks for one. The guardrail misses
encoded orders and orders in several pieces, and lets harmless commands pass.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.requests import MAIL, is_asked, requests_now, says_so
from tiltyard.guardrails.simple_rules import HARMLESS_COMMAND, added, broken_rule, target_of

MAX_SUSPECTS: Final = 64
GUARDED: Final = frozenset(("fs.write", "fs.delete", "email.send", "http.post", "shell.run"))

_FILE: Final = r"(?:(?:the|my|your|our)\s+)?(?:file\s+)?[\"“`]?([\w?*-]+(?:/[\w?*-]+)*\.\w+)"
"""A file as an order names it: with or without an owner, the word `file` and quotation marks."""

ORDERS: Final = (
    re.compile(
        r"\b(?:mail|email|send|forward)\b[^!?\n]*?\bto\s+[\"“`]?([\w.+-]+@[\w.-]+\w)", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:post|upload|submit|send)\b[^!?\n]*?\bto\s+[\"“`]?(https?://[^\s\"“”`<>]+)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:write|save|store|copy)\b[^!?\n]*?\b(?:to|into|in|as)\s+{_FILE}", re.IGNORECASE
    ),
    re.compile(rf"\b(?:write|save|store|copy)\s+{_FILE}\S?\s+with\b", re.IGNORECASE),
    re.compile(
        r"\b(?:run|execute)\s+(?:the\s+command\s+)?[\"“`]([^\"“”`\n]+)[\"”`]", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:run|execute)\s+(?:the\s+command\s+)?(\w[^\"“”`\n;]*?)[.!?]?(?:\s*\n|\s*\Z|(?<=[.!?])\s)",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:delete|remove)\s+{_FILE}", re.IGNORECASE),
)

WITHOUT_ENDING: Final = re.compile(
    r"\b(?:write|save|store|copy)\b[^!?\n]*?\bfile\s+([\w-]+)(?![\w/-]|\.\w)", re.IGNORECASE
)
"""An order that names a file without its ending, which is `.txt`."""

REPLY: Final = re.compile(r"\breply\b[^.!?\n]*?\bwith\b|\bto the sender\b", re.IGNORECASE)
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
        if tool_name not in GUARDED or is_asked(tool_name, target, context):
            return Decision.allow()
        if tool_name == MAIL and not any(MAIL in each.kinds for each in requests_now(context)):
            return Decision.deny("the user asked for no mail")
        if target in self.suspects:
            return Decision.deny(f"{target} stands in an order that was read")
        if target in self.senders and not _asks_to_reply(str(tool_args.get("body", "")), context):
            return Decision.deny(f"{target} ordered a reply")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember the targets of the orders in a result."""
        del tool_args
        if not result.ok:
            return
        found = [target for order in ORDERS for target in order.findall(result.output)]
        found = [target for target in found if not HARMLESS_COMMAND.fullmatch(target)]
        found += (f"{name}.txt" for name in WITHOUT_ENDING.findall(result.output))
        self.suspects = added(self.suspects, found, MAX_SUSPECTS)
        if tool_name == "email.read" and REPLY.search(result.output):
            self.senders = added(self.senders, SENDER.findall(result.output), MAX_SUSPECTS)


def _asks_to_reply(body: str, context: Context) -> bool:
    return any(each.to_sender and says_so(each, body) for each in requests_now(context))
