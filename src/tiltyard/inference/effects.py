"""Infer the effect of a tool: from words first, then from arguments, then from hints.

Each step can only make the effect more severe. READ needs evidence, like any other effect.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference.arguments import Argument
from tiltyard.inference.claims import Claim, claims_of_description, claims_of_name, worst
from tiltyard.inference.kinds import Effect, Role
from tiltyard.inference.roles import RECEIVERS, Setting, infer_roles, words_of
from tiltyard.inference.vocabulary import SEVERITY, TAKING_OUT, VERBS, word_set
from tiltyard.inference.words import base_forms, has_any, split_name

_SELECTORS: Final = word_set("action operation op method verb command mode")
_HTTP: Final = {
    "get": Effect.READ,
    "head": Effect.READ,
    "post": Effect.SEND,
    "put": Effect.SEND,
    "patch": Effect.SEND,
    "delete": Effect.DELETE,
}
_STORING: Final = word_set("save store write output export")
_ASKING: Final = word_set("get read list show view find search lookup retrieve return")
_MAILED_TO: Final = RECEIVERS | {"email", "mail", "to"}
_PAYLOADS: Final = word_set("body content payload attachment data")


class FoundEffect(Struct, frozen=True):
    """An effect with its evidence."""

    effect: Effect
    verb: str
    reasons: tuple[str, ...]

    def at_least(self, effect: Effect, reason: str) -> "FoundEffect":
        """Return the more severe of two effects."""
        if SEVERITY.index(effect) <= SEVERITY.index(self.effect):
            return self
        return FoundEffect(effect, self.verb, (*self.reasons, f"{reason}: {effect}"))


def infer_effect(declared: Declaration, arguments: Sequence[Argument]) -> FoundEffect:
    """Return the effect of a tool and the evidence for it."""
    words = words_of(declared)
    found = _by_words(declared, arguments, words)
    for one in arguments:
        found = _by_selector(found, one)
    roles = infer_roles(arguments, Setting(found.effect, words, found.verb))
    found = _by_arguments(found, arguments, roles)
    return _by_hints(found, declared)


def _by_words(
    declared: Declaration, arguments: Sequence[Argument], words: frozenset[str]
) -> FoundEffect:
    described = claims_of_description(declared)
    named = worst(claims_of_name(declared))
    if named is not None and named.unsure and described:
        named = None
    first = named or worst(described)
    if first is None:
        return FoundEffect(Effect.UNKNOWN, "", ("no word says what it does",))
    found = FoundEffect(first.effect, first.word, (_quote(first),))
    for claim in described:
        says_more = not set(base_forms(claim.word)) & set(base_forms(found.verb))
        if claim.effect is Effect.SEND and found.effect is not Effect.READ and says_more:
            sent = infer_roles(arguments, Setting(Effect.SEND, words, claim.word))
            if Role.DESTINATION not in sent.values():
                continue  # A notification that the caller cannot direct.
        found = found.at_least(claim.effect, _quote(claim))
    return found


def _quote(claim: Claim) -> str:
    return f"its {claim.by} says {claim.word!r}"


def _by_selector(found: FoundEffect, one: Argument) -> FoundEffect:
    """Take the worst choice of an argument such as `action`."""
    if not (one.choices and has_any(one.words[-1:], _SELECTORS)):
        return found
    for choice in one.choices:
        words = split_name(choice)[:1]
        for form in (form for word in words for form in base_forms(word)):
            effect = _HTTP.get(form) if one.last == "method" else VERBS.get(form)
            if effect is not None:
                found = found.at_least(effect, f"{one.pointer} can be {choice!r}")
    return found


def _by_arguments(
    found: FoundEffect,
    arguments: Sequence[Argument],
    roles: dict[str, Role],
) -> FoundEffect:
    given = set(roles.values())
    takes_out = has_any([found.verb], TAKING_OUT)
    for one in arguments:
        role = roles[one.pointer]
        if takes_out and role is not Role.PATH and has_any(one.words, _MAILED_TO):
            found = found.at_least(Effect.SEND, f"{one.pointer} receives it")
        if role is Role.COMMAND:
            found = found.at_least(Effect.EXECUTE, f"{one.pointer} is a command")
        if role is Role.PATH and (takes_out or _stores(one)):
            found = found.at_least(Effect.WRITE, f"{one.pointer} is a file to write")
        if found.effect is Effect.READ and role is Role.CONTENT and has_any(one.words, _PAYLOADS):
            found = _with_payload(found, one, sends=Role.DESTINATION in given)
        if has_any(one.words, RECEIVERS) and role is Role.DESTINATION and _delivers(found, given):
            found = found.at_least(Effect.SEND, f"{one.pointer} receives it")
    if {Role.AMOUNT, Role.DESTINATION} <= given and found.effect is not Effect.READ:
        found = found.at_least(Effect.PAY, "it has an amount and a destination")
    return found


def _delivers(found: FoundEffect, given: set[Role]) -> bool:
    if found.effect is Effect.UNKNOWN:
        return Role.CONTENT in given
    return found.effect is Effect.WRITE and found.verb not in ("draft", "save", "keep")


def _stores(one: Argument) -> bool:
    return bool(has_any(one.described[:8], _STORING) or has_any(one.words, _STORING))


def _with_payload(found: FoundEffect, one: Argument, *, sends: bool) -> FoundEffect:
    if sends:
        return found.at_least(Effect.SEND, f"{one.pointer} goes to a destination")
    if has_any([found.verb], _ASKING):
        return found.at_least(Effect.UNKNOWN, f"a read needs no {one.pointer}")
    return found


def _by_hints(found: FoundEffect, declared: Declaration) -> FoundEffect:
    """Hints that admit a change count. Hints that deny one count only if the operator vouches."""
    hints = declared.hints
    if found.effect is Effect.READ and (hints.read_only is False or hints.destructive):
        name = "readOnlyHint is false" if hints.read_only is False else "destructiveHint is true"
        return found.at_least(Effect.WRITE, name)
    if found.effect is Effect.UNKNOWN and hints.trusted and hints.read_only:
        return FoundEffect(Effect.READ, found.verb, (*found.reasons, "trusted readOnlyHint: READ"))
    return found
