"""Tiltyard: the arena for AI-agent security.

Each name is imported when it is first used, so `import tiltyard` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tiltyard.agents.deterministic import DeterministicAgent
    from tiltyard.contracts.agent import AgentTraits, View
    from tiltyard.contracts.asking import AskError
    from tiltyard.contracts.attack import (
        AttackAlgorithmBase,
        AttackCandidate,
        AttackRunConfig,
        BudgetSpentError,
    )
    from tiltyard.contracts.decision import Action, Decision
    from tiltyard.contracts.declaration import (
        Declaration,
        DeclarationError,
        Hints,
        read_declarations,
    )
    from tiltyard.contracts.guardrail import (
        Context,
        GuardrailBase,
        Passage,
        Result,
        contract_of,
    )
    from tiltyard.contracts.policy import Policy, PolicyError, read_policy
    from tiltyard.contracts.trace import Answer
    from tiltyard.episode.conversation import (
        Conversation,
        LocalConversation,
        OpenConversation,
        open_locally,
    )
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
    "AskError",
    "AttackAlgorithmBase",
    "AttackCandidate",
    "AttackRunConfig",
    "BudgetSpentError",
    "Context",
    "Conversation",
    "DataFlowGuardrail",
    "Decision",
    "Declaration",
    "DeclarationError",
    "DeterministicAgent",
    "FixturesError",
    "GuardrailBase",
    "Hints",
    "Judge",
    "LocalConversation",
    "OpenConversation",
    "Passage",
    "PatternMatchingGuardrail",
    "Policy",
    "PolicyError",
    "ReferenceGuardrail",
    "Result",
    "SandboxEnv",
    "SimpleRulesGuardrail",
    "TaintTrackingGuardrail",
    "ToolCall",
    "View",
    "contract_of",
    "open_locally",
    "read_declarations",
    "read_policy",
]

_HOMES: Final = {
    "Action": "tiltyard.contracts.decision",
    "AgentTraits": "tiltyard.contracts.agent",
    "AllowAllGuardrail": "tiltyard.guardrails",
    "Answer": "tiltyard.contracts.trace",
    "AskError": "tiltyard.contracts.asking",
    "AttackAlgorithmBase": "tiltyard.contracts.attack",
    "AttackCandidate": "tiltyard.contracts.attack",
    "AttackRunConfig": "tiltyard.contracts.attack",
    "BudgetSpentError": "tiltyard.contracts.attack",
    "Context": "tiltyard.contracts.guardrail",
    "Conversation": "tiltyard.episode.conversation",
    "DataFlowGuardrail": "tiltyard.guardrails",
    "Decision": "tiltyard.contracts.decision",
    "Declaration": "tiltyard.contracts.declaration",
    "DeclarationError": "tiltyard.contracts.declaration",
    "DeterministicAgent": "tiltyard.agents.deterministic",
    "FixturesError": "tiltyard.world.fixtures",
    "GuardrailBase": "tiltyard.contracts.guardrail",
    "Hints": "tiltyard.contracts.declaration",
    "Judge": "tiltyard.judge",
    "LocalConversation": "tiltyard.episode.conversation",
    "OpenConversation": "tiltyard.episode.conversation",
    "Passage": "tiltyard.contracts.guardrail",
    "PatternMatchingGuardrail": "tiltyard.guardrails",
    "Policy": "tiltyard.contracts.policy",
    "PolicyError": "tiltyard.contracts.policy",
    "ReferenceGuardrail": "tiltyard.guardrails",
    "Result": "tiltyard.contracts.guardrail",
    "SandboxEnv": "tiltyard.episode.sandbox_env",
    "SimpleRulesGuardrail": "tiltyard.guardrails",
    "TaintTrackingGuardrail": "tiltyard.guardrails",
    "ToolCall": "tiltyard.world.results",
    "View": "tiltyard.contracts.agent",
    "contract_of": "tiltyard.contracts.guardrail",
    "open_locally": "tiltyard.episode.conversation",
    "read_declarations": "tiltyard.contracts.declaration",
    "read_policy": "tiltyard.contracts.policy",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
