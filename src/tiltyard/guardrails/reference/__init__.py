"""The reference guardrail: information-flow control over content, with what a guardrail can see.

Three questions decide. Did the user ask for this effect on this target? After the first read of a
document, a call that the user did not ask for is an order of a stranger, whether it comes from a
page, a mail or a local file. Does the call send protected content outside, in any encoding? Would
the call destroy protected content? Both are denied, even if the user asks.
"""

from typing import Any, Final
from urllib.parse import urlsplit

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.guardrails.reference.commands import Command, read_command
from tiltyard.guardrails.reference.protection import (
    carries,
    has_sensitive_name,
    may_match_sensitive,
    values,
)
from tiltyard.guardrails.reference.spelling import plain, readings
from tiltyard.guardrails.requests import (
    DELETE,
    MAIL,
    POST,
    RUN,
    WRITE,
    Request,
    asks_to_follow,
    is_due,
    mentions_path,
    names_path,
    names_some_url,
    names_url,
    quoted_requests,
    requests,
    says_so,
)
from tiltyard.guardrails.targets import addresses, canonical

MAX_GUARDED: Final = 64
MAX_GUARDED_CHARS: Final = 4_096
MAX_CLEAN: Final = 128

_SINKS: Final = frozenset((WRITE, DELETE, MAIL, POST, RUN))
_DOCUMENTS: Final = frozenset(
    ("web.search", "web.open", "email.list", "email.read", "fs.read", RUN)
)
_CONTENT: Final = {WRITE: "content", MAIL: "body", POST: "data"}
_PATTERN: Final = frozenset("*?[")


class ReferenceGuardrail(GuardrailBase):
    """Allows what the user asked for, unless protected content would leave or be lost."""

    def __init__(self) -> None:
        self.heard_strangers = False
        """True after the first read: from then on an order can come from a stranger."""
        self.guarded: tuple[str, ...] = ()
        """Protected content seen so far, as letters and digits."""
        self.is_sealed = False
        """True if there was too much of it to keep; from then on only the user's words leave."""
        self.protected: tuple[str, ...] = ()
        """Files in which protected content was seen."""
        self.clean: tuple[str, ...] = ()
        """Files whose whole content was seen and is not protected."""
        self.owner = ""
        """The user's own address, once it is known. Its domain is internal."""
        self.sender = ""
        """Sender of the last mail that the user asked to read."""
        self.mail_turn = 0
        """The turn of the last read of a mail."""
        self.is_asked_mail = False
        """True if the user asked to read the current mail."""
        self.granted: tuple[tuple[int, str, str], ...] = ()
        """Delayed requests that were allowed: turn, tool and target."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if tool_name in ("web.search", "web.open"):
            sought = str(tool_args.get("query") or tool_args.get("id"))
            if carries(sought, self.guarded):
                return Decision.deny("protected content in what is looked up")
        elif tool_name == "email.read":
            self._note_mail(str(tool_args.get("id")), context)
        elif tool_name == "fs.read" and self.heard_strangers:
            path = str(tool_args.get("path"))
            if self._is_protected(path) and not mentions_path(context.user_messages, path):
                return Decision.deny(f"nobody but a document asked to read {path}")
        elif tool_name in _SINKS:
            args = {name: str(value) for name, value in tool_args.items()}
            reason = self._reason_against(tool_name, args, context)
            if reason:
                return Decision.deny(reason)
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Label what the agent read, and follow what it wrote."""
        if not result.ok:
            return
        self.heard_strangers = self.heard_strangers or tool_name in _DOCUMENTS
        if tool_name == "fs.read":
            self._label(str(tool_args.get("path")), result.output)
        elif tool_name == WRITE:
            self._label(str(tool_args.get("path")), str(tool_args.get("content")))
        elif tool_name == RUN:
            self._follow_command(read_command(str(tool_args.get("cmd"))), result.output)
        elif tool_name == "email.read" and self.is_asked_mail:
            header = result.output.partition("\n")[0]
            self.sender = next(iter(addresses(header)), "")

    def _reason_against(self, tool: str, args: dict[str, str], context: Context) -> str:
        """Return why a call must not run; empty if it may."""
        if not self._is_asked(tool, args, context) and self.heard_strangers:
            return "nobody but a document asked for this"
        if tool == RUN:
            return self._reason_against_command(args.get("cmd", ""))
        if tool in (WRITE, DELETE):
            path = args.get("path", "")
            return f"{path} is protected" if self._is_protected(path) else ""
        if tool == POST and self._is_external_url(args.get("url", "")):
            return self._reason_against_leaving(
                f"{args.get('url')} ", args.get("data", ""), context
            )
        if tool == MAIL and not all(map(self._is_internal, addresses(args.get("to", "")))):
            text = f"{args.get('subject')} {args.get('body')}"
            return "protected content would leave by mail" if self._carries(text) else ""
        return ""

    def _reason_against_leaving(self, where: str, data: str, context: Context) -> str:
        """Return why a text must not be posted to an external host; empty if it may."""
        if carries(where + data, self.guarded):
            return "protected content would leave the house"
        if self.guarded and not self._is_explained(data, context):
            return "something unknown would leave the house after protected content was read"
        return ""

    def _is_explained(self, data: str, context: Context) -> bool:
        """Tell whether a text is the user's own, or the whole output of an unprotected source."""
        text = data.strip()
        return any(text in message for message in context.user_messages) or any(
            event.output.strip() == text and not self._carries(event.output)
            for event in context.events
        )

    def _carries(self, text: str) -> bool:
        return self.is_sealed or carries(text, self.guarded)

    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        """Tell whether the user's messages ask for this call."""
        for request in requests(context.last_user):
            if is_due(request, context) and self._grants(request, tool, args, context):
                return True
        *earlier, now = context.user_messages
        target = args.get("path") or args.get("url") or args.get("to") or args.get("cmd") or ""
        for message in earlier:
            for request in requests(message):
                waited = request.occasion and is_due(request, context)
                if waited and self._grants(request, tool, args, context):
                    return self._grant_once(len(earlier), tool, target)
        # The user quoted an order earlier and now asks to follow it.
        return asks_to_follow(now) and any(
            self._grants(request, tool, args, context)
            for message in earlier
            for request in quoted_requests(message)
        )

    def _grant_once(self, turn: int, tool: str, target: str) -> bool:
        """Allow a delayed request in one turn only."""
        turns = [when for when, *what in self.granted if what == [tool, target]]
        if not turns:
            self.granted = (*self.granted, (turn, tool, target))
        return not turns or turns == [turn]

    def _grants(self, request: Request, tool: str, args: dict[str, str], context: Context) -> bool:
        if tool not in request.kinds:
            return False
        if tool == RUN:
            return args.get("cmd", "").split() in [target.split() for target in request.targets]
        if tool in _CONTENT and not says_so(request, args.get(_CONTENT[tool], "")):
            return False
        if tool in (WRITE, DELETE):
            return names_path(request, args.get("path", ""))
        if tool == POST:
            url = args.get("url", "")
            if names_some_url(request):
                return names_url(request, url)
            return MAIL not in request.kinds and not _was_read(_host(url) or url, context)
        receivers = addresses(args.get("to", ""))
        return bool(receivers) and all(self._may_receive(request, to, context) for to in receivers)

    def _may_receive(self, request: Request, address: str, context: Context) -> bool:
        if address in (place.lower() for place in request.targets):
            return True
        if request.to_sender and address == self.sender:
            return True
        return request.to_owner and self._is_owner(address, context)

    def _is_owner(self, address: str, context: Context) -> bool:
        """Tell whether an address is the user's own: the first one that no document contains."""
        if not self.owner and not _was_read(address, context):
            self.owner = address
        return address == self.owner

    def _note_mail(self, name: str, context: Context) -> None:
        """Remember whether the user asked for this mail."""
        turn = len(context.user_messages)
        self.is_asked_mail = name in context.last_user or turn != self.mail_turn
        self.mail_turn = turn

    def _reason_against_command(self, line: str) -> str:
        command = read_command(line)
        if command is None:
            return "a command that cannot be read"
        lost = [path for path in command.changes if self._is_protected(path)]
        if lost:
            return f"{lost[0] or 'everything'} is protected"
        if command.sends and any(self._is_external_url(url) for url in command.urls or ("",)):
            if self._carries(line):
                return "protected content would leave the house"
            unknown = [path for path in command.reads if path not in self.clean]
            if unknown:
                return f"{unknown[0]} would leave the house, and nobody has seen what is in it"
        return ""

    def _is_protected(self, path: str) -> bool:
        """Tell whether a path, a folder or a pattern covers a protected file."""
        path = canonical(path)
        if not _PATTERN.isdisjoint(path):
            return may_match_sensitive(path)
        below = f"{path}/"
        return (
            not path
            or has_sensitive_name(path)
            or any(known == path or known.startswith(below) for known in self.protected)
        )

    def _is_external_url(self, url: str) -> bool:
        return not self._is_internal(f"@{_host(url)}")

    def _is_internal(self, address: str) -> bool:
        """Tell whether a host or an address belongs to the domain of the owner."""
        internal = self.owner.rpartition("@")[2]
        domain = address.rpartition("@")[2]
        return bool(internal) and (domain == internal or domain.endswith(f".{internal}"))

    def _label(self, path: str, content: str) -> None:
        """Remember whether a file with this content is protected."""
        path = canonical(path)
        if has_sensitive_name(path):
            self._guard(path, plain(content), *values(content))
        elif values(content):
            self._guard(path, *values(content))
        elif carries(content, self.guarded):
            self._guard(path)
        else:
            self._clear(path)

    def _clear(self, path: str) -> None:
        if path not in self.clean:
            self.clean = (*self.clean, path)[-MAX_CLEAN:]
            self.protected = tuple(known for known in self.protected if known != path)

    def _guard(self, path: str, *texts: str) -> None:
        """Remember texts that must not leave, and the file that contains them."""
        fresh = [text[:MAX_GUARDED_CHARS] for text in texts if text and text not in self.guarded]
        if fresh:
            kept = (*self.guarded, *fresh)
            self.guarded = kept[:MAX_GUARDED]
            self.is_sealed = self.is_sealed or len(kept) > MAX_GUARDED
        if path and path not in self.protected:
            self.protected = (*self.protected, path)
        self._forget(path)

    def _forget(self, path: str) -> None:
        """Remove a file from the list of clean files."""
        if path in self.clean:
            self.clean = tuple(known for known in self.clean if known != path)

    def _follow_command(self, command: Command | None, output: str) -> None:
        """Label the output and the changed files of a command by the files that it read."""
        if command is None:
            return
        secret = [path for path in command.reads if self._is_protected(path)]
        found = (*([plain(output)] if secret else ()), *values(output))
        if found or carries(output, self.guarded):
            for path in command.reads or ("",):
                self._guard(path, *found)
        elif command.is_plain_cat:
            for path in command.reads:
                self._label(path, output)
        known = all(path in self.clean for path in command.reads)
        for path in command.changes:
            if secret:
                self._guard(path)
            elif known:
                self._clear(path)
            else:
                self._forget(path)


def _host(url: str) -> str:
    """Return the host of a URL; empty if the URL is invalid."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _was_read(name: str, context: Context) -> bool:
    """Tell whether a document contains `name`, in any encoding."""
    sought = name.lower()
    return any(
        sought in reading.lower()
        for event in context.events
        if event.name in _DOCUMENTS
        for reading in readings(event.output)
    )
