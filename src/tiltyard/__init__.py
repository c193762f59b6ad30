"""Tiltyard: the arena for AI-agent security."""

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.contracts.agent import AgentTraits, View
from tiltyard.contracts.attack import (
    AttackAlgorithmBase,
    AttackCandidate,
    AttackRunConfig,
    BudgetSpentError,
)
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, Result
from tiltyard.contracts.trace import Answer
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.guardrails import (
    AllowAllGuardrail,
    DataFlowGuardrail,
    PatternMatchingGuardrail,
    ReferenceGuardrail,
    SimpleRulesGuardrail,
    TaintTrackingGuardrail,
)
from tiltyard.judge import Judge
from tiltyard.world.fixtures import FixturesError
from tiltyard.world.results import ToolCall

__version__ = "0.1.0"

__all__ = [
    "Action",
    "AgentTraits",
    "AllowAllGuardrail",
    "Answer",
    "AttackAlgorithmBase",
    "AttackCandidate",
    "AttackRunConfig",
    "BudgetSpentError",
    "Context",
    "DataFlowGuardrail",
    "Decision",
    "DeterministicAgent",
    "FixturesError",
    "GuardrailBase",
    "Judge",
    "PatternMatchingGuardrail",
    "ReferenceGuardrail",
    "Result",
    "SandboxEnv",
    "SimpleRulesGuardrail",
    "TaintTrackingGuardrail",
    "ToolCall",
    "View",
]
