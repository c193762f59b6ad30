"""What `sanitize` may do to a call: remove and redact, nothing else.

The changed call keeps the causes and labels of the original: what is left of a text is still
labelled with who wrote it, so no guardrail can wash a call by handing back the same words.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from tiltyard.world.results import Argument, ToolCall
from tiltyard.world.text import Cutter, Text, by_machine, join
from tiltyard.world.tools import TOOLS

_MARK: Final = re.compile(r"\[REDACTED\]|\[redacted\]|\*{3,}|█+")
"""How a redaction may look. Everything between marks must come from the original, in order."""


class NotARedactionError(ValueError):
    """New arguments that are not just less, and where."""


def redact(call: ToolCall, args: Mapping[str, Any]) -> ToolCall:
    """Return the call with less in it."""
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
    """Match what is left against the original, at the earliest places it fits, and label it so."""
    if new == text.string:
        return text
    cutter = Cutter(text)
    parts: list[Text] = []
    position = 0
    end = 0
    for match in [*_MARK.finditer(new), None]:
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
