"""The ten tools of the simulated machine as declarations, for contexts in the ruleset `design`."""

from typing import Any, Final

from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.contracts.guardrail import Setting, ToolFacts
from tiltyard.contracts.policy import Policy
from tiltyard.world.scenario import Labels
from tiltyard.world.tools import TOOLS, Scope, SideEffect, Tool

MACHINE: Final = "machine"
"""The name of the server that offers the ten tools."""
_READS: Final = (SideEffect.READ, SideEffect.NETWORK)
"""The tools with these effects change nothing."""


def _declare(tool: Tool) -> Declaration:
    properties: dict[str, Any] = {
        one.name: {"type": "integer"} if one.number else {"type": "string"}
        for one in tool.parameters
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": [one.name for one in tool.parameters if one.required],
        "additionalProperties": False,
    }
    reads = tool.side_effect in _READS
    hints = Hints(
        read_only=reads,
        destructive=not reads,
        open_world=tool.scope is not Scope.LOCAL,
        trusted=True,
    )
    return Declaration(tool.name, "", tool.description, schema, None, hints, MACHINE)


def _policy(labels: Labels) -> Policy:
    return Policy(
        owner_addresses=(labels.owner,),
        internal_domains=labels.internal_domains,
        protected=tuple(one.path for one in labels.protected),
    )


CLASSIC_TOOLS: Final = tuple(map(_declare, TOOLS.values()))
CLASSIC: Final = Setting(
    CLASSIC_TOOLS,
    _policy(Labels()),
    {
        one.name: ToolFacts(TOOLS[one.name].side_effect.value, TOOLS[one.name].scope.value, one)
        for one in CLASSIC_TOOLS
    },
    ToolFacts("", ""),
)
"""The setting of every match of the ruleset `design`, with the owner of generated worlds."""
