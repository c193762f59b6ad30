"""Allows every mail to an address that begins like the user's own."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail


class Guardrail(ReferenceGuardrail):
    def _is_asked(self, tool: str, args: dict[str, str], context: Context) -> bool:
        return args.get("to", "").startswith("me@") or super()._is_asked(tool, args, context)
