"""What `sanitize` may do to a call: remove and redact, nothing else.

The changed call keeps the causes and labels of the original: what is left of a text is still
labelled with who wrote it, so no guardrail can wash a call by handing back the same words.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tiltyard.world.results import Argument, ToolCall
from tiltyard.world.text import Text, by_machine, join
from tiltyard.world.tools import TOOLS

_MARK: Final = re.compile(r"\[REDACTED\]|\[redacted\]|\*{3,}|█+")
"""How a redaction may look. Everything between marks must come from the original, in order."""


def redact(call: ToolCall, args: Mapping[str, Any]) -> ToolCall | None:
    """Return the call with less in it, or None if the new arguments are not just less."""
    if not args.keys() <= call.args.keys() or call.args.keys() - args.keys() - _optional(call):
        return None
    kept: dict[str, Argument] = {}
    for name, new in args.items():
        value = call.args[name]
        if isinstance(value, Text) and isinstance(new, str):
            less = _less_of(value, new)
            if less is None:
                return None
            kept[name] = less
        elif type(new) is type(value) and new == value:
            kept[name] = value
        else:
            return None
    return ToolCall(call.tool, kept, call.because, call.uses)


def _optional(call: ToolCall) -> set[str]:
    tool = TOOLS.get(call.tool)
    return set() if tool is None else {p.name for p in tool.parameters if not p.required}


def _less_of(text: Text, new: str) -> Text | None:
    """Match what is left against the original, and label it so."""
    if new == text.string:
        return text
    parts: list[Text] = []
    position = 0
    end = 0
    for match in [*_MARK.finditer(new), None]:
        kept = new[end : len(new) if match is None else match.start()]
        found = _whole(text, kept, position) or _scattered(text, kept, position)
        if found is None:
            return None
        left, position = found
        parts.append(left)
        if match is not None:
            parts.append(by_machine(match.group()))
            end = match.end()
    return join(parts)


def _whole(text: Text, kept: str, position: int) -> tuple[Text, int] | None:
    """Find the kept words in one piece.

    Of several places, the first that a stranger or a secret has a part in: in doubt a label stays.
    """
    chosen: tuple[Text, int] | None = None
    start = text.string.find(kept, position)
    for _ in range(_MAX_PLACES):
        if start < 0:
            break
        found = text.slice(start, start + len(kept)), start + len(kept)
        if any(origin.protected or not origin.trusted for origin in found[0].origins()):
            return found
        chosen = chosen or found
        start = text.string.find(kept, start + 1)
    return chosen


def _scattered(text: Text, kept: str, position: int) -> tuple[Text, int] | None:
    """Find the kept words character by character, in order."""
    parts: list[Text] = []
    for char in kept:
        found = text.string.find(char, position)
        if found < 0:
            return None
        parts.append(text.slice(found, found + 1))
        position = found + 1
    return join(parts), position


_MAX_PLACES: Final = 64
