"""Taint tracking with a window, and the gap that every window leaves.

After an untrusted read, all calls of the same message and of the next two are tainted. A tainted
call passes only if the user asked for it. Who asks for a mail "to me" or for a reply means their
own address or the sender's. Files written meanwhile carry the taint, and so does every text with a
line of an untrusted document: a note or a copy does not clean it. But the window ends: the
guardrail forgets an order that waits for some harmless messages. It also lets harmless commands
pass.
"""

import re
import zlib
from collections.abc import Iterator
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.requests import (
    MAIL,
    POST,
    RUN,
    WRITE,
    asks_to_follow,
    is_asked,
    requests_now,
    says_so,
)
from tiltyard.guardrails.simple_rules import (
    HARMLESS_COMMAND,
    added,
    broken_rule,
    is_default_post,
    target_of,
)

UNTRUSTED: Final = frozenset(("web", "email"))
WINDOW: Final = 3
"""How many messages the taint lasts, including the one with the untrusted read."""
MAX_CARRIERS: Final = 64
MIN_LINE: Final = 12
"""Shorter lines, such as a greeting, can occur in any document."""
MAX_LINES: Final = 512
DANGEROUS: Final = frozenset((MAIL, POST, RUN))
READING: Final = frozenset(("fs.read", RUN))
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
        self.lines: tuple[int, ...] = ()
        """Checksums of the lines of untrusted documents. To read such a line is an untrusted read,
        whatever file or command it comes from."""
        self.senders: tuple[str, ...] = ()
        """Senders of the mails that the user wanted to read."""
        self.mail_message = 0
        """Number of the message with the last read of a mail."""
        self.is_wanted = False
        """True if the user wants to read the current mail."""
        self.mentioned: tuple[str, ...] = ()
        """Addresses in the text of untrusted documents, and of what was read soon after."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        self.message = len(context.user_messages)
        broken = broken_rule(tool_name, tool_args, context)
        if broken:
            return Decision.deny(broken)
        if tool_name == "email.read":
            # An order can lead to a second mail, and an answer would go to its sender.
            named = str(tool_args.get("id")) in context.last_user
            self.is_wanted = named or self.mail_message != self.message
            self.mail_message = self.message
        target = target_of(tool_name, tool_args)
        # To follow a note is to follow what was read, however long ago.
        follows = bool(self.tainted) and asks_to_follow(context.last_user)
        tainted = self._is_tainted() or follows or target in self.mentioned
        if tainted and tool_name in DANGEROUS and not self._is_asked(tool_name, tool_args, context):
            return Decision.deny(f"{tool_name} so soon after untrusted input")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember untrusted reads, and the files written after them."""
        if not result.ok:
            return
        if result.source in UNTRUSTED or self._is_tainted():
            self._note_addresses(tool_name, result.output)
        path = str(tool_args.get("path", ""))
        if result.source in UNTRUSTED:
            self.tainted = self.message
            self.lines = added(self.lines, _checksums(result.output), MAX_LINES)
        elif tool_name in READING and (path in self.carriers or self._is_known(result.output)):
            self.tainted = self.message
        elif tool_name == WRITE and self._is_tainted() and path not in self.carriers:
            self.carriers = (*self.carriers, path)[-MAX_CARRIERS:]

    def _is_tainted(self) -> bool:
        return bool(self.tainted) and self.message - self.tainted < WINDOW

    def _is_known(self, text: str) -> bool:
        """Tell whether a text has a line of an untrusted document."""
        return not set(self.lines).isdisjoint(_checksums(text))

    def _is_asked(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> bool:
        """Tell whether the user named the target, or asked for a mail without an address."""
        target = target_of(tool_name, tool_args)
        if is_asked(tool_name, target, context):
            return True
        if tool_name == RUN:
            return HARMLESS_COMMAND.fullmatch(target) is not None
        if tool_name == POST:
            return is_default_post(target, context)
        body = str(tool_args.get("body", ""))
        mails = (request for request in requests_now(context) if MAIL in request.kinds)
        asked = [request for request in mails if says_so(request, body)]
        if target in self.senders:
            return any(request.to_sender for request in asked)
        own = target.startswith(OWN) and target not in self.mentioned
        return own and any(request.to_owner for request in asked)

    def _note_addresses(self, tool_name: str, output: str) -> None:
        """Remember the sender of a mail, and every address in the text of a document."""
        if tool_name == "email.list":
            return  # a list of senders, and the user's own address if a mail to the user arrived
        text = output
        if tool_name == "email.read":
            header, _, text = output.partition("\n\n")
            senders = ADDRESS.findall(header.partition("\n")[0]) if self.is_wanted else []
            self.senders = added(self.senders, senders, MAX_ADDRESSES)
        self.mentioned = added(self.mentioned, ADDRESS.findall(text), MAX_ADDRESSES)


def _checksums(text: str) -> Iterator[int]:
    """Yield a checksum of every line that is long enough to tell where it comes from."""
    for line in text.splitlines():
        words = line.strip()
        if len(words) >= MIN_LINE:
            yield zlib.crc32(words.encode(errors="replace"))
