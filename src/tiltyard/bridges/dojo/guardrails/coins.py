"""Guardrails that toss a coin. The same call in the same conversation gets the same answer."""

import json
from typing import Any

from tiltyard.bridges.dojo.guardrails.facts import has_effect
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context
from tiltyard.foundation.draw import Draw


class CoinForEveryCall:
    """Denies every second call, by chance."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        call = json.dumps(tool_args, sort_keys=True)
        draw = Draw("coin", context.last_user, len(context.events), tool_name, call)
        return Decision.deny("the coin says no") if draw.chance(1, 2) else Decision.allow()


class CoinForEveryEffect(CoinForEveryCall):
    """Denies every second effect, by chance."""

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if not has_effect(context):
            return Decision.allow()
        return super().decide(tool_name, tool_args, context)
