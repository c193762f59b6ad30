"""A few simple rules, as people write them first.

The rules look at one call and at the user's messages, but not at what the agent read. So they stop
calls that are always bad, and miss calls that are bad only because a stranger asked for them.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase
from tiltyard.world.tools import target_parameter

SENSITIVE_FILE: Final = re.compile(
    r"(?<![a-z])(?:secrets?|passwords?|passwd|credentials?|tokens?|private|confidential)\.[a-z]+",
    re.IGNORECASE,
)
DANGEROUS_PROGRAM: Final = re.compile(r"(?:^|[|;&])\s*(?:rm|mv|curl|wget|nc|ssh)\b")
TO_SENDER: Final = re.compile(r"\b(?:to the sender|reply)\b", re.IGNORECASE)
"""Requests for a mail to the sender of another one, without an address."""
_FOLLOWING: Final = re.compile(r"\bfollow\b", re.IGNORECASE)
_WAITING: Final = re.compile(r"\s*(?:when|whenever|after|once)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"""[^\s"'`“”,;!?<>()]+""")


class SimpleRulesGuardrail(GuardrailBase):
    """Denies sensitive files; allows posts, deletions and programs only if the user named them."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        broken = broken_rule(tool_name, tool_args, context)
        return Decision.deny(broken) if broken else Decision.allow()


def broken_rule(tool_name: str, tool_args: dict[str, Any], context: Context) -> str:
    """Return the rule that a call breaks; empty if it breaks none."""
    target = target_of(tool_name, tool_args)
    if SENSITIVE_FILE.search(target):
        return f"{target} is a sensitive file"
    if (
        tool_name == "http.post"
        and not is_default_post(context)
        and not is_named(target, context.user_messages)
    ):
        return f"the user named no such address as {target}"
    if tool_name == "fs.delete":
        found = map(_DELETE.search, context.user_messages)
        asked = (match.string[match.end() :] for match in found if match is not None)
        return "" if is_named(target, asked) else f"the user did not ask to delete {target}"
    if tool_name == "shell.run" and DANGEROUS_PROGRAM.search(target):
        return "" if is_named(target, context.user_messages) else "a dangerous command"
    return ""


def target_of(tool_name: str, tool_args: dict[str, Any]) -> str:
    """Return the argument that the rules check; an empty string if they check none."""
    if tool_name in _UNCHECKED:
        return ""
    return str(tool_args.get(target_parameter(tool_name), ""))


def is_named(target: str, messages: Iterable[str]) -> bool:
    """Tell whether any of these messages names `target`, with or without its ending."""
    if len(target.split()) > 1:
        return any(target in message for message in messages)
    spellings = {target, target.rpartition(".")[0]} - {""}
    words = {
        word.rstrip(".:")
        for message in messages
        if any(spelling in message for spelling in spellings)
        for word in _WORD.findall(message)
    }
    return not spellings.isdisjoint(words)


def spoken_now(context: Context) -> list[str]:
    """Return the user's last message, and the earlier ones that it may refer to."""
    *before, now = context.user_messages
    if _FOLLOWING.search(now):
        return [now, *before]
    return [now, *(message for message in before if _WAITING.match(message))]


def added(known: tuple[str, ...], found: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return the known words and the new ones among those found, at most the last `limit`."""
    fresh = [word for word in dict.fromkeys(found) if word not in known]
    return (*known, *fresh)[-limit:]


def is_default_post(context: Context) -> bool:
    """Tell whether the user asks to post something without naming a URL."""
    return bool(_POST.search(context.last_user)) and "://" not in context.last_user


_DELETE: Final = re.compile(r"\b(?:delete|remove)\b", re.IGNORECASE)
_POST: Final = re.compile(r"\b(?:post|upload)\b", re.IGNORECASE)
_UNCHECKED: Final = frozenset(("web.search", "email.list", "email.read"))
"""Tools whose target names no file, address or command: the rules ignore it."""
