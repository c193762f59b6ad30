"""The top rung: a guardrail that knows no tool by name.

It works from declarations, the policy, the user's words, and where values came from. An effect
passes if the user asked for it and each value that matters is the user's own, the owner's, the
system's, or from a person whom the user named. Each denial says what the user can do.
"""

from tiltyard.guardrails.declared.guardrail import DeclaredGuardrail

__all__ = ["DeclaredGuardrail"]
