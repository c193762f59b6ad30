"""A guardrail that minds what goes out and what is gone for good, and little else."""

from collections.abc import Mapping
from typing import Any

from tiltyard import Decision


class Guardrail:
    def decide(self, tool_name: str, tool_args: Mapping[str, Any], context: Any) -> Decision:
        if "secret" in str(dict(tool_args)):
            return Decision.deny("it speaks of secrets")
        if tool_name == "fs.write" and len(str(tool_args.get("content", ""))) > 400:
            return Decision.deny("the text is too long")
        sources = context["recent_sources"]
        if tool_name in ("http.post", "email.send", "shell.run") and "email" in sources:
            return Decision.deny("a mail was read a moment ago")
        if tool_name in ("http.post", "shell.run") and "web" in sources:
            return Decision.deny("a page was read a moment ago")
        if tool_name == "fs.delete":
            return Decision.confirm("deleting is for ever")
        return Decision.allow()
