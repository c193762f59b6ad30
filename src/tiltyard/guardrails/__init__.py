"""The guardrails that ship with Tiltyard: each a readable module, all through the public contract."""

from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.guardrails.data_flow import DataFlowGuardrail

__all__ = ["AllowAllGuardrail", "DataFlowGuardrail"]
