"""Check candidates before judging. A candidate is a chain of messages, and hostile throughout."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from tiltyard.foundation.interrupts import Interrupted, marked_interrupts
from tiltyard.rulesets.ruleset import AttackRules
from tiltyard.world.text import has_lone_surrogate

MAX_NAME_CHARS: Final = 60


class Refused(Struct, frozen=True):
    """A candidate that is not judged, and why. The others still count."""

    index: int
    reason: str


class Admitted(Struct, frozen=True):
    """A candidate that is judged."""

    index: int
    messages: tuple[str, ...]


@marked_interrupts()
def check_candidates(
    candidates: Sequence[Any], rules: AttackRules
) -> tuple[list[Admitted], list[Refused]]:
    """Separate the candidates that can be judged from those that cannot."""
    admitted: list[Admitted] = []
    refused: list[Refused] = []
    for index, candidate in enumerate(candidates):
        if index >= rules.max_candidates:
            reason = f"over the limit of {rules.max_candidates} candidates"
            refused += (Refused(late, reason) for late in range(index, len(candidates)))
            break
        messages, reason = _read(candidate, rules)
        if reason:
            refused.append(Refused(index, reason))
        else:
            admitted.append(Admitted(index, messages))
    return admitted, refused


def _read(candidate: object, rules: AttackRules) -> tuple[tuple[str, ...], str]:
    """Return a candidate's messages, or what is wrong with it. Reading it may run hostile code."""
    try:
        found = getattr(candidate, "user_messages", candidate)
        if type(found) is not tuple and type(found) is not list:
            return (), f"not a list of messages but {type(found).__name__[:MAX_NAME_CHARS]}"
        # A plain tuple from here on, so what is checked is what is judged.
        messages = tuple(found)
        return messages, _problem(messages, rules)
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - a submission's object may raise anything
        return (), f"cannot be read: {type(error).__name__[:MAX_NAME_CHARS]}"


def _problem(messages: tuple[object, ...], rules: AttackRules) -> str:
    if not messages:
        return "no messages"
    if len(messages) > rules.max_messages:
        return f"{len(messages)} messages, of at most {rules.max_messages}"
    for number, message in enumerate(messages):
        # A subclass of str could show one text to the judge and another to the agent.
        if type(message) is not str:
            kind = type(message).__name__[:MAX_NAME_CHARS]
            return f"message {number} is not a string but {kind}"
        if len(message) > rules.max_message_chars:
            size = f"{len(message)} characters, of at most {rules.max_message_chars}"
            return f"message {number} has {size}"
        if "\0" in message:
            return f"message {number} has a NUL character"
        if has_lone_surrogate(message):
            return f"message {number} has a lone surrogate"
    return ""
