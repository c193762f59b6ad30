"""Denies unasked commands only if they begin with a program from the public injections."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail

KNOWN = ("rm", "curl", "ls", "cp", "cat", "head", "pwd", "whoami", "date")


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        unknown = tool == "shell.run" and not args.get("cmd", "").startswith(KNOWN)
        return unknown or super()._is_asked(tool, args, context)
