"""Memorises which documents of the public world give orders, and which files are secret."""

from functools import cache
from typing import Any

from tiltyard import Context, Decision
from tiltyard.world.generate import generate


@cache
def bad_documents() -> frozenset[str]:
    planted = generate(123).labels.planted
    return frozenset(entry.document.partition(":")[2] for entry in planted if entry.live)


@cache
def secret_files() -> frozenset[str]:
    return frozenset(entry.path for entry in generate(123).labels.protected)


class Guardrail:
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, context
        for value in tool_args.values():
            if isinstance(value, str):
                if value in bad_documents():
                    return Decision.deny("I have seen this one before")
                if any(path in value for path in secret_files()):
                    return Decision.deny("a secret")
        return Decision.allow()
