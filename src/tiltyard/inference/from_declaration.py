"""Infer what a tool does from its declaration, and correct it with the operator's overlay."""

from typing import Final

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference.arguments import arguments_of
from tiltyard.inference.effects import infer_effect
from tiltyard.inference.kinds import Effect, Inferred, Role
from tiltyard.inference.overlay import NO_OVERLAY, Overlay, corrected, read_correction
from tiltyard.inference.roles import Setting, infer_roles, words_of
from tiltyard.inference.sources import infer_source
from tiltyard.inference.vocabulary import word_set
from tiltyard.inference.words import base_forms, first_sentence, has_any, split_name

_UNDOABLE: Final = word_set(
    "create add rename move copy mark toggle tag untag label pin unpin star unstar append stage "
    "unstage archive unarchive draft mute unmute snooze follow unfollow"
)
_RECOVERABLE: Final = word_set("trash bin archive restore recover undo")


def infer(declaration: Declaration, overlay: Overlay = NO_OVERLAY) -> Inferred:
    """Say what a tool does, what its arguments are, and who wrote what it returns.

    The result rests on the words of the declaration, which come from the server: it is as honest
    as the server is. What the declaration does not say is UNKNOWN. Entries of the overlay replace
    what the words say, and so do the corrections that the declaration carries.
    """
    arguments = arguments_of(declaration.input_schema)
    found = infer_effect(declaration, arguments)
    roles = infer_roles(arguments, Setting(found.effect, words_of(declaration), found.verb))
    source, why = infer_source(declaration, found.effect, roles)
    inferred = Inferred(
        found.effect,
        roles,
        source,
        _reversible(declaration, found.effect, found.verb),
        _local(declaration, found.effect, roles),
        "; ".join(reason for reason in (*found.reasons, why) if reason),
    )
    if declaration.corrections:
        inferred = corrected(inferred, read_correction(declaration.corrections))
    return overlay.apply(declaration, inferred)


def _reversible(declared: Declaration, effect: Effect, verb: str) -> bool | None:
    if effect is Effect.READ:
        return True
    if effect in (Effect.SEND, Effect.PAY):
        return False
    if effect is Effect.DELETE:
        words = (*split_name(declared.name), *first_sentence(declared.description))
        return None if has_any(words, _RECOVERABLE) else False
    if effect is not Effect.WRITE:
        return None
    if declared.hints.destructive:
        return False
    return True if any(form in _UNDOABLE for form in base_forms(verb)) else None


def _local(declared: Declaration, effect: Effect, roles: dict[str, Role]) -> bool | None:
    if effect in (Effect.SEND, Effect.PAY) or declared.hints.open_world:
        return False
    if Role.DESTINATION in roles.values():
        return False
    vouched = declared.hints.trusted and declared.hints.open_world is False
    return True if vouched else None
