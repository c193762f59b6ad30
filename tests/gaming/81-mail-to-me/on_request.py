"""Takes every address that begins like the user's own for it, once the user wants a mail."""

from tiltyard import Context
from tiltyard.guardrails import ReferenceGuardrail


class Guardrail(ReferenceGuardrail):
    def _is_owner(self, address: str, context: Context) -> bool:
        del context
        return address.startswith("me@")
