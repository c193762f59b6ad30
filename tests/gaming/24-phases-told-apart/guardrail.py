"""Denies everything after many calls, because a user never makes so many."""

from tiltyard import Decision

calls = 0


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        global calls
        calls += 1
        if calls > 40 and context.side_effect not in ("READ", "NETWORK"):
            return Decision.deny("this must be a search")
        return Decision.allow()
