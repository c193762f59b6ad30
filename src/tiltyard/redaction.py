"""What `sanitize` may do to a call: remove and redact, nothing else.

The changed call keeps the causes and labels of the original: what is left of a text is still
labelled with who wrote it, so no guardrail can wash a call by handing back the same words.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tiltyard.world.results import Argument, ToolCall
from tiltyard.world.text import Text, by_machine, join

_MARK: Final = re.compile(r"\[REDACTED\]|\[redacted\]|\*{3,}|█+")
"""How a redaction may look. Everything between marks must come from the original, in order."""


def redact(call: ToolCall, args: Mapping[str, Any]) -> ToolCall | None:
    """Return the call with less in it, or None if the new arguments are not just less."""
    if args.keys() != call.args.keys():
        return None
    kept: dict[str, Argument] = {}
    for name, value in call.args.items():
        new = args[name]
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


def _less_of(text: Text, new: str) -> Text | None:
    """Match what is left against the original, character by character, and label it so."""
    if new == text.string:
        return text
    parts: list[Text] = []
    position = 0
    end = 0
    for match in [*_MARK.finditer(new), None]:
        start = len(new) if match is None else match.start()
        for char in new[end:start]:
            found = text.string.find(char, position)
            if found < 0:
                return None
            parts.append(text.slice(found, found + 1))
            position = found + 1
        if match is not None:
            parts.append(by_machine(match.group()))
            end = match.end()
    return join(parts)
