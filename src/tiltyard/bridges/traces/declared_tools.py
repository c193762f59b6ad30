"""Read declarations of tools from traces, and from the file of `--tools`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tiltyard.bridges.traces.errors import BadRunError, TraceError
from tiltyard.bridges.traces.strict_json import parse_json
from tiltyard.contracts.declaration import Declaration, DeclarationError, read_declarations

MAX_TOOLS_BYTES: Final = 10_000_000
_KEPT: Final = 500
"""How many lists of tools are remembered. Most traces repeat a few."""


class ToolLists:
    """Reads lists of tools, and remembers those that it has read.

    Equal lists give the same tuple, so that a conversation checks it once.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[Declaration, ...]] = {}

    def read(self, raw: Sequence[Any]) -> tuple[Declaration, ...]:
        """Return the declarations of a trace. Raise BadRunError if they are wrong."""
        key = json.dumps(raw)
        found = self._read.get(key)
        if found is None:
            try:
                found = read_declarations([plain_tool(one) for one in raw])
            except DeclarationError as error:
                raise BadRunError(str(error)) from None
            if len(self._read) >= _KEPT:
                self._read.clear()
            self._read[key] = found
        return found


def plain_tool(raw: Any) -> Any:
    """Return a tool as MCP writes it. Chat Completions nests it, and names its schema otherwise."""
    if not isinstance(raw, Mapping):
        return raw
    inner = raw.get("function")
    tool = inner if isinstance(inner, Mapping) else raw
    if "parameters" not in tool:
        return tool
    known = {name: tool[name] for name in ("name", "description", "title") if name in tool}
    schema = tool["parameters"]
    return known | {"inputSchema": schema if isinstance(schema, Mapping) else {}}


def read_tools(path: Path) -> tuple[Declaration, ...]:
    """Read the file of `--tools`: the answer to `tools/list`, or a list of tools."""
    raw = path.read_bytes()
    if len(raw) > MAX_TOOLS_BYTES:
        raise TraceError(f"{path} has {len(raw):,} bytes; the limit is {MAX_TOOLS_BYTES:,}")
    try:
        found = parse_json(raw, str(path))
    except BadRunError as error:
        raise TraceError(f"{error}; save the server's answer to `tools/list`") from None
    server = ""
    if isinstance(found, Mapping):
        found = found.get("result", found)
    if isinstance(found, Mapping):
        server = found["server"] if isinstance(found.get("server"), str) else ""
        found = found.get("tools", found)
    if isinstance(found, list):
        found = [plain_tool(one) for one in found]
    return read_declarations(found, server)
