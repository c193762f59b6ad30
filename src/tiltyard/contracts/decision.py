"""What a guardrail may say about a call: a type, never a string to be parsed again."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct


class Action(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    CONFIRM = "confirm"
    """Ask the user. In a match nobody is there to say yes, so it is answered no."""
    SANITIZE = "sanitize"
    """Let the call through with something removed or redacted."""


class Fault(StrEnum):
    """What a guardrail did wrong. Every fault denies the call."""

    RAISED = "raised"
    NOT_A_DECISION = "not_a_decision"
    CHANGED_ARGUMENTS = "changed_arguments"
    NOT_A_REDACTION = "not_a_redaction"


class Decision(Struct, frozen=True, gc=False):
    """A guardrail's word on one call, with its reason."""

    action: Action
    reason: str = ""
    sanitized_args: Mapping[str, Any] | None = None
    """With SANITIZE: the arguments to use instead."""
    fault: Fault | None = None
    """Set by the episode alone, when the guardrail failed to decide properly."""

    @staticmethod
    def allow(reason: str = "") -> "Decision":
        return Decision(Action.ALLOW, reason) if reason else ALLOWED

    @staticmethod
    def deny(reason: str = "") -> "Decision":
        return Decision(Action.DENY, reason)

    @staticmethod
    def confirm(reason: str = "") -> "Decision":
        return Decision(Action.CONFIRM, reason)

    @staticmethod
    def sanitize(sanitized_args: Mapping[str, Any], reason: str = "") -> "Decision":
        return Decision(Action.SANITIZE, reason, sanitized_args)


ALLOWED: Final = Decision(Action.ALLOW)
"""What most calls get; one value serves them all."""
