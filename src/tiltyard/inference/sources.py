"""Infer who wrote what a tool returns. Only positive evidence makes a source trusted."""

from collections.abc import Iterable, Sequence
from typing import Final

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference.arguments import Argument, arguments_of
from tiltyard.inference.kinds import Effect, Role, Source
from tiltyard.inference.vocabulary import (
    MACHINE_FACTS,
    NEUTRAL,
    NUMBERS,
    OWN_THINGS,
    OWN_WORDS,
    STRANGERS,
    VERBS,
    WEB,
)
from tiltyard.inference.words import first_sentence, has_any, present_forms, split_name

_SUCCESS: Final = frozenset({"success", "ok", "done", "succeeded"})
_REMARKS: Final = frozenset({"message", "status", "error"})
_OPENING_WORDS: Final = 10
"""Words of a description that name what the tool returns."""


def infer_source(
    declared: Declaration, effect: Effect, roles: dict[str, Role]
) -> tuple[Source, str]:
    """Return the source and the evidence for it, which is empty if there is none."""
    outputs = arguments_of(declared.output_schema)
    if outputs and all(_cannot_speak(one) for one in outputs):
        return Source.SYSTEM, "the output schema has no free text"
    strange = _strange(declared, effect, roles)
    if effect is not Effect.READ:
        if _confirms(outputs) and effect is not Effect.EXECUTE:
            return Source.SYSTEM, "the output schema is a confirmation"
        return (Source.STRANGERS, strange) if strange else (Source.UNKNOWN, "")
    if not strange and not declared.hints.open_world:
        names_records = any(role is not Role.OPTION for role in roles.values())
        facts = NUMBERS if names_records else MACHINE_FACTS
        if _asks_only_for(declared, facts, facts | NEUTRAL):
            return Source.SYSTEM, "its name asks for a fact of the machine"
        if not names_records and _asks_only_for(declared, OWN_THINGS, OWN_WORDS):
            return Source.OWNER, "its name asks for the user's own data"
    if strange:
        return Source.STRANGERS, strange
    return (
        (Source.STRANGERS, "openWorldHint") if declared.hints.open_world else (Source.UNKNOWN, "")
    )


def _strange(declared: Declaration, effect: Effect, roles: dict[str, Role]) -> str:
    """Return the evidence that other people choose the words of the result."""
    known = STRANGERS if effect is Effect.READ else WEB
    name = _nouns(split_name(declared.name))
    word = has_any(name, known)
    if not word and not _asks_only_for(declared, OWN_THINGS, OWN_WORDS):
        first = first_sentence(declared.description)
        word = has_any(_nouns(first[:_OPENING_WORDS]), known)
    if word:
        return f"it returns words about {word!r}"
    if effect in (Effect.READ, Effect.EXECUTE):
        for pointer, role in roles.items():
            if role in (Role.PATH, Role.COMMAND) or (role is Role.DESTINATION):
                return f"it reads from {pointer}"
    return ""


def _nouns(words: Iterable[str]) -> list[str]:
    """Leave out a leading verb: `search_mail` is about mail, and `mail_search` too."""
    kept = list(words)
    if len(kept) > 1 and any(form in VERBS for form in present_forms(kept[0])):
        kept = kept[1:]
    return kept


def _asks_only_for(declared: Declaration, wanted: frozenset[str], allowed: frozenset[str]) -> bool:
    """Say whether a name asks for these things only. `user` is the owner, `users` are strangers."""
    words = _nouns(split_name(declared.name))
    return bool(wanted.intersection(words)) and allowed.issuperset(words)


def _cannot_speak(one: Argument) -> bool:
    """Numbers, switches and choices carry no instructions."""
    return bool(one.types) and (one.types <= {"number", "integer", "boolean"} or bool(one.choices))


def _confirms(outputs: Sequence[Argument]) -> bool:
    """`{"success": true, "message": "..."}` confirms. A text alone can be anything."""
    flags = [one for one in outputs if one.types == {"boolean"} and one.last in _SUCCESS]
    return bool(flags) and all(_cannot_speak(one) or one.last in _REMARKS for one in outputs)
