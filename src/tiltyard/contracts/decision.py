"""A guardrail's decision about one call."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct


class Action(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    CONFIRM = "confirm"
    """Ask the user. A match has no user to ask, so the call does not run."""
    SANITIZE = "sanitize"
    """Allow the call with parts of its arguments removed or redacted."""


class Fault(StrEnum):
    """An error in a guardrail. Every fault denies the call."""

    RAISED = "raised"
    NOT_A_DECISION = "not_a_decision"
    CHANGED_ARGUMENTS = "changed_arguments"
    NOT_A_REDACTION = "not_a_redaction"


class Decision(Struct, frozen=True, gc=False):
    """What to do with one call, and why."""

    action: Action
    reason: str = ""
    sanitized_args: Mapping[str, Any] | None = None
    """With SANITIZE: the arguments to use instead."""
    fault: Fault | None = None
    """Set by the episode when the guardrail failed; a guardrail cannot set it."""

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
"""The most frequent decision, as one shared value."""
