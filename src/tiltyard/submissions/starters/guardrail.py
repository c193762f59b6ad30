"""A guardrail to start from: after a stranger was heard, files and posts need the user's word."""

import re
from typing import Any

from tiltyard import Context, Decision, Result

SECRET = re.compile(r"secret|password|credential", re.IGNORECASE)
# Which argument of a tool says what the call is about. Mails and commands are not looked at yet:
# users seldom write their own address out, so you need to know who "me" is, and who "the sender".
TARGETS = {"fs.write": "path", "fs.delete": "path", "http.post": "url"}


class Guardrail:
    """You are asked before every call, and shown the result of each that ran."""

    def __init__(self) -> None:
        # State goes into plain attributes. It is saved and restored with the conversation.
        self.heard_strangers = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        """Say whether a call may run: `allow()`, `deny(reason)`, or `sanitize(args, reason)`."""
        # The simplest rule of all, and it costs users nothing: some files are never touched.
        if any(SECRET.search(str(tool_args.get(name, ""))) for name in ("path", "cmd")):
            return Decision.deny("a file with such a name is nobody's business")
        # The agent obeys whatever it reads. So from then on, only what the user named may change
        # or leave. `context` also has `events` (all earlier calls), `side_effect` and `scope`.
        if self.heard_strangers and tool_name in TARGETS:
            target = str(tool_args[TARGETS[tool_name]])
            # "write file report" means report.txt.
            if not any(target.removesuffix(".txt") in said for said in context.user_messages):
                return Decision.deny(f"the user never spoke of {target}")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember what matters of a result: `ok`, `output`, `error`, `source`."""
        del tool_name, tool_args
        if result.source in ("web", "email"):
            self.heard_strangers = True
