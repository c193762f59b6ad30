"""The guardrails that ship with Tiltyard. They use only the public contract.

They form a ladder from no protection at all to information-flow control: see `docs/ladder.md`.
"""

from typing import Final

from tiltyard.contracts.guardrail import GuardrailBase
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.guardrails.data_flow import DataFlowGuardrail
from tiltyard.guardrails.pattern_matching import PatternMatchingGuardrail
from tiltyard.guardrails.reference import ReferenceGuardrail
from tiltyard.guardrails.simple_rules import SimpleRulesGuardrail
from tiltyard.guardrails.taint_tracking import TaintTrackingGuardrail

GUARDRAIL_LADDER: Final[dict[str, type[GuardrailBase]]] = {
    "allow-all": AllowAllGuardrail,
    "simple rules": SimpleRulesGuardrail,
    "pattern matching": PatternMatchingGuardrail,
    "taint tracking": TaintTrackingGuardrail,
    "data flow": DataFlowGuardrail,
    "reference": ReferenceGuardrail,
}
"""From the weakest guardrail to the strongest."""

__all__ = [
    "GUARDRAIL_LADDER",
    "AllowAllGuardrail",
    "DataFlowGuardrail",
    "PatternMatchingGuardrail",
    "ReferenceGuardrail",
    "SimpleRulesGuardrail",
    "TaintTrackingGuardrail",
]
