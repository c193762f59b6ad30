"""The tools of a conversation: pins, names and limits."""

import time
from typing import Any

from tiltyard.bridges.guard.toolbox import MAX_REFUSED, Toolbox
from tiltyard.contracts.declaration import MAX_TOOLS
from tiltyard.contracts.policy import NO_POLICY
from tiltyard.inference import Overlay


def listing(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [*tools]}


def test_a_server_that_changes_a_tool_too_often_loses_it() -> None:
    toolbox = Toolbox(NO_POLICY, Overlay())
    for version in range(MAX_TOOLS + MAX_REFUSED + 1):
        assert len([*toolbox.take("s", listing({"name": "x", "description": f"{version}"}))]) == 1
    found = toolbox.find("s", "x")
    assert found is not None
    assert found.refused == "the server declared too many tools"
    assert toolbox.declarations() == ()


def test_many_tools_are_read_in_time_that_grows_with_their_number() -> None:
    tools = [
        {"name": f"tool_{number}", "description": "Does something.", "inputSchema": {}}
        for number in range(MAX_TOOLS + 1)
    ]
    start = time.process_time()
    toolbox = Toolbox(NO_POLICY, Overlay())
    taken = [*toolbox.take("s", listing(*tools))]
    assert time.process_time() - start < 5
    assert len(toolbox.declarations()) == MAX_TOOLS
    assert taken[-1].refused == f"more than {MAX_TOOLS:,} tools are declared"


def test_declarations_that_are_too_large_together_are_refused() -> None:
    properties = {f"argument_{number}": {"description": "x" * 900} for number in range(20)}
    schema = {"type": "object", "properties": properties}
    toolbox = Toolbox(NO_POLICY, Overlay())
    tools = [{"name": f"tool_{number}", "inputSchema": schema} for number in range(300)]
    taken = [*toolbox.take("s", listing(*tools))]
    assert taken[0].declaration is not None
    assert "bytes together" in taken[-1].refused
