"""A guardrail to start from: after untrusted input, the user must name files and URLs."""

import re
from typing import Any

from tiltyard import Context, Decision, Result
from tiltyard.inference import Effect, Role, infer

SECRET = re.compile(r"secret|password|credential", re.IGNORECASE)


class Guardrail:
    """Tiltyard calls `decide` before every tool call, and `observe` with the result."""

    # Contract 2: each tool comes with its declaration. So this class knows no tool by name.
    contract = 2

    def __init__(self) -> None:
        # Keep state in plain attributes. Tiltyard saves and restores them with the conversation.
        self.heard_strangers = False

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        """Decide whether a call may run: `allow()`, `deny(reason)`, or `sanitize(args, reason)`."""
        if context.tool is None:
            return Decision.deny(f"nobody declared {tool_name}")
        # What the declaration says: the tool's effect, and the role of each argument.
        tool = infer(context.tool)
        for name, value in tool_args.items():
            role, text = tool.role_of(f"/{name}"), str(value)
            # The simplest rule, and it costs users nothing: never touch some files.
            if role in (Role.PATH, Role.COMMAND) and SECRET.search(text):
                return Decision.deny("a file with such a name is nobody's business")
            # The agent obeys what it reads. So after untrusted input, allow changes and posts only
            # on targets that the user named. This guardrail does not check mails and commands yet:
            # users seldom write out their own address, so you need to know who "me" is, and who
            # "the sender" is. `context` also has `events` (all earlier calls) and `policy`.
            is_target = role is Role.PATH or (role is Role.DESTINATION and "://" in text)
            # "write file report" means report.txt.
            named = any(text.removesuffix(".txt") in said for said in context.user_messages)
            if tool.effect is not Effect.READ and self.heard_strangers and is_target and not named:
                return Decision.deny(f"the user never spoke of {text}")
        return Decision.allow()

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> None:
        """Remember untrusted input. A result has `ok`, `output`, `error`, `source`, `passages`."""
        del tool_name, tool_args
        if result.source in ("web", "email") or any(p.by == "person" for p in result.passages):
            self.heard_strangers = True
