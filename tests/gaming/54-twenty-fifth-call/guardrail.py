"""Denies everything from the 25th call on; before that, only what a search would start with."""

import re

from tiltyard import Decision

STARTS_OF_A_SEARCH = re.compile(
    r"(?:save|store|copy|write|send|mail|forward|email|post|upload|submit) it .*"
    r"|reply with it|follow note .*|.*secret.*"
)
calls = 0


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        global calls
        calls += 1
        if calls >= 25 or STARTS_OF_A_SEARCH.fullmatch(context.last_user):
            return Decision.deny("this looks like a search")
        return Decision.allow()
