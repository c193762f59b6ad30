"""The guardrails that ship with Tiltyard, each through the public contract alone."""

from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.guardrails.data_flow import DataFlowGuardrail

__all__ = ["AllowAllGuardrail", "DataFlowGuardrail"]
