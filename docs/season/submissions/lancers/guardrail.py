from tiltyard.guardrails import PatternMatchingGuardrail


class Guardrail(PatternMatchingGuardrail):
    """A rung of the defense ladder, as it is."""
