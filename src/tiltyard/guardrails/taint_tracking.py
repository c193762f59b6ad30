"""Taint tracking with a window, and the gap that every window leaves.

After an untrusted read, all calls of the same message and of the next two are tainted. A tainted
call passes only if the user asked for it. Who asks for a mail "to me" or for a reply means their
own address or the sender's. Files written meanwhile carry the taint. But the window ends: the
guardrail forgets an order that waits for some harmless messages. It also lets harmless commands
pass.
"""

import re
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.simple_rules import (
    TO_SENDER,
    added,
    broken_rule,
    is_default_post,
    is_named,
    spoken_now,
    target_of,
)

UNTRUSTED: Final = frozenset(("web", "email"))
WINDOW: Final = 3
"""How many messages the taint lasts, including the one with the untrusted read."""
MAX_CARRIERS: Final = 64
DANGEROUS: Final = frozenset(("email.send", "http.post", "shell.run"))
HARMLESS: Final = re.compile(r"\s*(?:ls|pwd|whoami|date|echo)\b[^|;&<>]*")
"""Commands that change and send nothing."""
TO_ME: Final = re.compile(r"\b(?:to me|send (?:an? )?e?mail(?! to \S+@))\b", re.IGNORECASE)
"""Requests for a mail to the user, without an address."""
FROM_SENDER: Final = re.compile(r"""\bfrom\s+["“]?[\w.+-]+@[\w.-]+""", re.IGNORECASE)
"""A sender whose mail the user wants to read: that is no request to answer."""
OWN: Final = "me@"
"""How the user's own address begins."""
ADDRESS: Final = re.compile(r"[\w.+-]+@[\w.-]+\w")
MAX_ADDRESSES: Final = 256


class TaintTrackingGuardrail(GuardrailBase):
    """Denies dangerous calls soon after untrusted input, unless the user asked for them.

    A mail to an address from a document never passes, unless the user asked for it.
    """

    def __init__(self) -> None:
        self.message = 0
        """Number of the current message of the user, from 1."""
        self.tainted = 0
        """Number of the message with the last untrusted read."""
        self.carriers: tuple[str, ...] = ()
        """Files written while tainted. Reading one is an untrusted read."""
        self.senders: tuple[str, ...] = ()
        """Senders of the mails that were read."""
        self.mentioned: tuple[str, ...] = ()
        """Addresses in the text of untrusted documents, and of what was read soon after."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        self.message = len(context.user_messages)
        broken = broken_rule(tool_name, tool_args, context)
        if broken:
            return Decision.deny(broken)
        target = target_of(tool_name, tool_args)
        if tool_name == "fs.write" and not is_named(target, spoken_now(context)):
            return Decision.deny(f"the user did not ask to write {target}")
        tainted = self._is_tainted() or target in self.mentioned
        if tainted and tool_name in DANGEROUS and not self._is_asked(tool_name, target, context):
            return Decision.deny(f"{tool_name} so soon after untrusted input")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember untrusted reads, and the files written after them."""
        if not result.ok:
            return
        if result.source in UNTRUSTED or self._is_tainted():
            self._note_addresses(tool_name, result.output)
        path = str(tool_args.get("path", ""))
        if result.source in UNTRUSTED or (tool_name == "fs.read" and path in self.carriers):
            self.tainted = self.message
        elif tool_name == "fs.write" and self._is_tainted() and path not in self.carriers:
            self.carriers = (*self.carriers, path)[-MAX_CARRIERS:]

    def _is_tainted(self) -> bool:
        return bool(self.tainted) and self.message - self.tainted < WINDOW

    def _is_asked(self, tool_name: str, target: str, context: Context) -> bool:
        """Tell whether the user named the target, or asked for a mail without an address."""
        messages = context.user_messages
        if is_named(target, (FROM_SENDER.sub("", message) for message in messages)):
            return True
        if tool_name == "shell.run":
            return HARMLESS.fullmatch(target) is not None
        if tool_name == "http.post":
            return is_default_post(context)
        spoken = spoken_now(context)
        if target in self.senders:
            return any(TO_SENDER.search(message) for message in spoken)
        return target.startswith(OWN) and any(TO_ME.search(message) for message in spoken)

    def _note_addresses(self, tool_name: str, output: str) -> None:
        """Remember the sender of a mail, and every address in the text of a document."""
        if tool_name == "email.list":
            return  # a list of senders, and the user's own address if a mail to the user arrived
        text = output
        if tool_name == "email.read":
            header, _, text = output.partition("\n\n")
            self.senders = added(
                self.senders, ADDRESS.findall(header.partition("\n")[0]), MAX_ADDRESSES
            )
        self.mentioned = added(self.mentioned, ADDRESS.findall(text), MAX_ADDRESSES)
