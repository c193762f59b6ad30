from tiltyard.guardrails import TaintTrackingGuardrail


class Guardrail(TaintTrackingGuardrail):
    """A rung of the defense ladder, as it is."""
