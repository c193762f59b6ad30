"""What simple guardrails look at: what a call does, and the values in it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import Context
from tiltyard.inference import Effect, Inferred, Role, infer

TARGETS: Final = frozenset(
    {
        Role.DESTINATION,
        Role.PATH,
        Role.AMOUNT,
        Role.IDENTIFIER,
        Role.COMMAND,
        Role.CREDENTIAL,
        Role.UNKNOWN,
    }
)
"""What decides whom or what a call affects. Content, queries and options do not."""


def has_effect(context: Context) -> bool:
    """Tell whether this call may change something. A tool that nobody declared may."""
    return context.tool is None or infer_once(context.tool).effect is not Effect.READ


def reads_before(context: Context) -> bool:
    """Tell whether a call before this one has returned something to read."""
    reading = {one.name for one in context.tools if infer_once(one).effect is Effect.READ}
    return any(event.ok and event.name in reading for event in context.events)


def values_of(
    args: dict[str, Any], tool: Declaration | None, roles: frozenset[Role]
) -> Iterator[str]:
    """Yield the values of a call that have one of these roles; of an undeclared tool, all."""
    known = None if tool is None else infer_once(tool)
    for pointer, value in leaves(args):
        if known is None or known.role_of(pointer) in roles:
            yield value


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a JSON value, each with its JSON pointer."""
    if isinstance(value, dict):
        for key, member in value.items():
            name = key.replace("~", "~0").replace("/", "~1")
            yield from leaves(member, f"{pointer}/{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from leaves(item, f"{pointer}/{at}")
    elif isinstance(value, float) and value.is_integer():
        yield pointer, str(int(value))
    elif value is not None and not isinstance(value, bool) and value != "":
        yield pointer, str(value)


def says(messages: list[str], value: str) -> bool:
    """Tell whether the user names a value, as whole words."""
    pattern = rf"(?<!\w){re.escape(value)}(?!\w)"
    return any(re.search(pattern, message, re.IGNORECASE) for message in messages)


def infer_once(tool: Declaration) -> Inferred:
    """Infer what a tool does, once in a process: every conversation asks again."""
    return _infer(msgspec.msgpack.encode(tool))


@lru_cache(maxsize=1_000)
def _infer(encoded: bytes) -> Inferred:
    return infer(msgspec.msgpack.decode(encoded, type=Declaration))
