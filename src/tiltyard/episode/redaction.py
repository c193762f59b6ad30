"""Check a sanitized call: a guardrail may remove and redact, and nothing else.

The changed call keeps the causes and labels of the original. So a guardrail cannot remove the
author of a text by returning the same words.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from tiltyard.world.results import Argument, ToolCall
from tiltyard.world.text import Cutter, Text, by_machine, join
from tiltyard.world.tools import TOOLS

MARK: Final = re.compile(r"\[REDACTED\]|\[redacted\]|\*{3,}|█+")
"""The marks of a redaction. All text between marks must come from the original, in order."""


class NotARedactionError(ValueError):
    """The new arguments add or change something; the message names the argument."""


def redact(call: ToolCall, args: Mapping[str, Any]) -> ToolCall:
    """Return the call with the redacted arguments."""
    missing = call.args.keys() - args.keys() - _optional(call)
    for name in (*sorted(missing), *sorted(args.keys() - call.args.keys())):
        raise NotARedactionError(f"{name}: " + ("missing" if name in missing else "not asked for"))
    kept: dict[str, Argument] = {}
    for name, new in args.items():
        value = call.args[name]
        if isinstance(value, Text) and isinstance(new, str):
            less = _less_of(value, new)
            if less is None:
                raise NotARedactionError(
                    f"{name}: only removal, [REDACTED], *** and █ may change it"
                )
            kept[name] = less
        elif type(new) is type(value) and new == value:
            kept[name] = value
        else:
            raise NotARedactionError(f"{name}: changed")
    return structs.replace(call, args=kept)


def _optional(call: ToolCall) -> set[str]:
    tool = TOOLS.get(call.tool)
    return set() if tool is None else {p.name for p in tool.parameters if not p.required}


def _less_of(text: Text, new: str) -> Text | None:
    """Find the kept text in the original, at the earliest matches, and give it those labels."""
    if new == text.string:
        return text
    cutter = Cutter(text)
    parts: list[Text] = []
    position = 0
    end = 0
    for match in [*MARK.finditer(new), None]:
        kept = new[end : len(new) if match is None else match.start()]
        start = text.string.find(kept, position)
        if start >= 0:
            position = start + len(kept)
            parts.append(cutter.cut(start, position))
        else:
            for char in kept:
                start = text.string.find(char, position)
                if start < 0:
                    return None
                position = start + 1
                parts.append(cutter.cut(start, position))
        if match is not None:
            parts.append(by_machine(match.group()))
            end = match.end()
    return join(parts)
