from tiltyard.guardrails import SimpleRulesGuardrail


class Guardrail(SimpleRulesGuardrail):
    """A rung of the defense ladder, as it is."""
