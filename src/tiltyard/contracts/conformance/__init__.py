"""Conformance suites: tests that every agent, guardrail and attack must pass.

Inherit from a suite in your own test file, return your implementation from its `make_...` method,
and run pytest:

    class TestMyGuardrail(GuardrailConformance):
        def make_guardrail(self):
            return MyGuardrail()

The suites use plain asserts and need no test library. A suite plays its subject in a real episode,
so this package imports `tiltyard.episode` and `tiltyard.judge`, which lie above the contracts;
nothing in Tiltyard imports this package.
"""

from tiltyard.contracts.conformance.agents import AgentConformance
from tiltyard.contracts.conformance.attacks import AttackConformance
from tiltyard.contracts.conformance.guardrails import GuardrailConformance

__all__ = ["AgentConformance", "AttackConformance", "GuardrailConformance"]
