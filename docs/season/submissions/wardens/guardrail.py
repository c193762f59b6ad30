from tiltyard.guardrails import ReferenceGuardrail


class Guardrail(ReferenceGuardrail):
    """A rung of the defense ladder, as it is."""
