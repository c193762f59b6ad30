"""What may be judged: a candidate is a chain of messages, and everything about it is hostile."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tiltyard.ruleset import AttackRules


class Refused(Struct, frozen=True):
    """A candidate that is not judged; the others still count."""

    index: int
    reason: str


class Admitted(Struct, frozen=True):
    """A candidate that is."""

    index: int
    messages: tuple[str, ...]


def check_candidates(
    candidates: Sequence[Any], rules: AttackRules
) -> tuple[list[Admitted], list[Refused]]:
    """Sort candidates into those that can be judged and those that cannot, with the reason."""
    admitted: list[Admitted] = []
    refused: list[Refused] = []
    for index, candidate in enumerate(candidates):
        if index >= rules.max_candidates:
            reason = f"over the limit of {rules.max_candidates} candidates"
            refused += (Refused(late, reason) for late in range(index, len(candidates)))
            break
        messages = getattr(candidate, "user_messages", candidate)
        reason = _problem(messages, rules)
        if reason:
            refused.append(Refused(index, reason))
        else:
            admitted.append(Admitted(index, tuple(messages)))
    return admitted, refused


def _problem(messages: object, rules: AttackRules) -> str:
    if not isinstance(messages, tuple | list):
        return f"not a list of messages but {type(messages).__name__}"
    if not messages:
        return "no messages"
    if len(messages) > rules.max_messages:
        return f"{len(messages)} messages, of at most {rules.max_messages}"
    for number, message in enumerate(messages):
        # A subclass of str could say one thing to the judge and another to the agent.
        if type(message) is not str:
            return f"message {number} is not a string but {type(message).__name__}"
        if len(message) > rules.max_message_chars:
            size = f"{len(message)} characters, of at most {rules.max_message_chars}"
            return f"message {number} has {size}"
        if "\0" in message:
            return f"message {number} has a NUL character"
        if not message.isascii() and any("\ud800" <= char <= "\udfff" for char in message):
            return f"message {number} has a lone surrogate"
    return ""
