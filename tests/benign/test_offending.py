"""Which argument of a stopped call a guardrail objects to."""

from typing import Any

import pytest

from tiltyard import GuardrailBase
from tiltyard.benign import Call, Task, Trial, allowed_values, offending_arguments, play
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context
from tiltyard.world.scenario import Scenario

TASK = Task(
    "open welcome",
    "by hand",
    ("open welcome, then save it to notes/a.txt",),
    (Call("web.open", "welcome"), Call("fs.write", "notes/a.txt")),
    (),
    ("web:p-2",),
)
OTHER = Task("save", "by hand", ('save "hello" to notes/b.txt',), (), (), ())


class ByContent(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        glad = tool_name == "fs.write" and "glad" in tool_args["content"]
        return Decision.deny("no") if glad else Decision.allow()


class ByKnownPath(GuardrailBase):
    """Denies an empty path too, so only an allowed value shows what it objects to."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        known = tool_name != "fs.write" or tool_args["path"] == "notes/b.txt"
        return Decision.allow() if known else Decision.confirm("where?")


class ByTool(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args, context
        return Decision.deny("read only") if tool_name == "fs.write" else Decision.allow()


class ByToolWithReason(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del context
        if tool_name == "fs.write":
            return Decision.deny(f"nobody named {tool_args['path']}")
        return Decision.allow()


@pytest.mark.parametrize(
    ("guardrail", "expected"),
    [
        (ByContent, ("content",)),
        (ByKnownPath, ("path",)),
        (ByTool, ()),
        (ByToolWithReason, ("path",)),
        (GuardrailBase, ()),
    ],
)
def test_the_argument_that_changes_the_decision_offends(
    small: Scenario, guardrail: type[GuardrailBase], expected: tuple[str, ...]
) -> None:
    trials: list[Trial] = [play(task, small, guardrail) for task in (TASK, OTHER)]
    found = offending_arguments(trials[0], small, guardrail, allowed_values(trials))
    assert found == expected
