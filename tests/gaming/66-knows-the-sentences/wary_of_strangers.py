"""After any page or mail, denies effects that no message asks for. The honest twin."""

from tiltyard.guardrails import ReferenceGuardrail


class Guardrail(ReferenceGuardrail):
    pass
