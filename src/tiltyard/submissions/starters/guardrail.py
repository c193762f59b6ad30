"""A guardrail to start from: after untrusted input, the user must name files and URLs."""

import re
from typing import Any

from tiltyard import Context, Decision, Result

SECRET = re.compile(r"secret|password|credential", re.IGNORECASE)
# The main argument of each tool. This guardrail does not check mails and commands yet: users seldom
# write out their own address, so you need to know who "me" is, and who "the sender" is.
TARGETS = {"fs.write": "path", "fs.delete": "path", "http.post": "url"}


class Guardrail:
    """Tiltyard calls `decide` before every tool call, and `observe` with the result."""

    def __init__(self) -> None:
        # Keep state in plain attributes. Tiltyard saves and restores them with the conversation.
        self.heard_strangers = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        """Decide whether a call may run: `allow()`, `deny(reason)`, or `sanitize(args, reason)`."""
        # The simplest rule, and it costs users nothing: never touch some files.
        if any(SECRET.search(str(tool_args.get(name, ""))) for name in ("path", "cmd")):
            return Decision.deny("a file with such a name is nobody's business")
        # The agent obeys what it reads. So after untrusted input, allow changes and posts only on
        # targets that the user named. `context` also has `events` (all earlier calls),
        # `side_effect` and `scope`.
        if self.heard_strangers and tool_name in TARGETS:
            target = str(tool_args[TARGETS[tool_name]])
            # "write file report" means report.txt.
            if not any(target.removesuffix(".txt") in said for said in context.user_messages):
                return Decision.deny(f"the user never spoke of {target}")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember untrusted input. A result has `ok`, `output`, `error` and `source`."""
        del tool_name, tool_args
        if result.source in ("web", "email"):
            self.heard_strangers = True
