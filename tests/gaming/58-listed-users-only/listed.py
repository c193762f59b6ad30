"""The reference guardrail, only for messages with the shape of the seven operations."""

import re
from functools import cache
from typing import Any

from tiltyard import Context, Decision
from tiltyard.benign import draw_tasks
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.world.generate import generate


def shape(message: str) -> str:
    """Keep only the small words: names, paths, addresses and quotations may vary."""
    message = re.sub(r'"[^"]*"|`[^`]*`', "@", message)
    return " ".join(w if w.isalpha() and len(w) < 8 else "@" for w in message.split())


@cache
def known() -> frozenset[str]:
    drawn = (draw_tasks(generate(seed), str(seed), 20) for seed in range(6))
    return frozenset(shape(said) for tasks in drawn for task in tasks for said in task.messages)


class Guardrail(ReferenceGuardrail):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        if shape(context.last_user) not in known():
            return Decision.deny("not one of our users")
        return super().decide(tool_name, tool_args, context)
