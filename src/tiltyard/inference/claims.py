"""Read from the words of a name and of a description what a tool says that it does."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference.kinds import Effect
from tiltyard.inference.vocabulary import (
    ACCESS_THINGS,
    ALSO_NOUNS,
    AMBIGUOUS,
    COMPOUNDS,
    INFORMATION,
    KNOWN_NOUNS,
    MESSAGES,
    MONEY,
    NOUNS_AT_THE_END,
    NOUNS_AT_THE_START,
    ORDERS,
    PROCESSES,
    READABLE,
    SENDABLE,
    SEVERITY,
    STARTING,
    STATES,
    STOPPING,
    VERBS,
)
from tiltyard.inference.words import base_forms, has_any, name_segments, present_forms, sentences

_MAX_SENTENCES: Final = 12
_JOINS: Final = frozenset({"and", "or", "then", "also", ",", "/", "&"})
_NOTHING: Final = frozenset({"nothing", "no", "none", "nobody"})
_NOT: Final = frozenset({"not", "never", "cannot", "can't", "doesn't", "don't", "won't", "without"})
_SUBJECTS: Final = frozenset({"it", "this", "tool", "will", "also", "then", "and", "you", "can"})
_OBJECTS: Final = frozenset(
    {"the", "a", "an", "your", "all", "any", "this", "that", "one", "each", "it", "them", "to"}
)
_ENDS_PHRASE: Final = _JOINS | frozenset(
    {"of", "to", "for", "from", "in", "with", "on", "at", "by", "that", "which", "into", "onto"}
)


class Claim(Struct, frozen=True):
    """An effect, and the word that says so."""

    effect: Effect
    word: str
    by: str
    """`name` or `description`."""
    unsure: bool = False
    """Whether the word can mean something else, so that a description should decide."""


def worst(claims: Sequence[Claim]) -> Claim | None:
    """Return the most severe claim; of equal ones the first."""
    return max(claims, key=lambda one: SEVERITY.index(one.effect), default=None)


def claims_of_name(declared: Declaration) -> list[Claim]:
    """Return the effects that the verbs of a tool's name say."""
    words, start = _words_of_name(declared)
    places = _verb_places(words, start)
    if not places:
        return _claims_of_nouns(words)
    found = [(at, _effect_at(words, at)) for at in places]
    return [
        Claim(effect or Effect.UNKNOWN, words[at], "name", not effect or _is_unsure(words, at))
        for at, effect in found
    ]


def _claims_of_nouns(words: Sequence[str]) -> list[Claim]:
    """Read a name without a verb: `channel_history` gives the history."""
    if not has_any(words[-1:], INFORMATION) or any(map(_only_verb, words)):
        return []
    # `meal_log` can log a meal, unless `call_log` is meant.
    doubtful = VERBS.get(words[-1], Effect.READ) is not Effect.READ
    if doubtful and words[0] not in NOUNS_AT_THE_START:
        return []
    return [Claim(Effect.READ, words[-1], "name")]


def _words_of_name(declared: Declaration) -> tuple[list[str], int]:
    """Return the words of a name without the server's, and where its last dotted part starts."""
    segments = [_joined(segment) for segment in name_segments(declared.name)]
    own = {word for segment in name_segments(declared.server) for word in segment}
    words = [word for segment in segments for word in segment]
    start = len(words) - len(segments[-1]) if len(segments) > 1 else 0
    if len(words) > 1 and words[0] in own:
        return words[1:], max(start - 1, 0)
    # `vendor_post_message`: the first word is a name.
    foreign = words[:1] != [] and not _is_verb(words[0]) and words[0] not in KNOWN_NOUNS
    if foreign and start == 0 and len(words) > 2 and _is_verb(words[1]):
        return words[1:], 0
    return words, start


def _joined(words: Sequence[str]) -> list[str]:
    """Write `log in` and `api key` as one word each."""
    found: list[str] = []
    for word in words:
        pair = f"{found[-1]} {word}" if found else ""
        if pair in COMPOUNDS:
            found[-1] = COMPOUNDS[pair]
        else:
            found.append(word)
    return found


def _verb_places(words: Sequence[str], start: int) -> list[int]:
    """Return where a name has its verbs: at its start, at its end, and after `and`."""
    if not words:
        return []
    joined = [at + 1 for at, word in enumerate(words[:-1]) if word in ("and", "or", "then")]
    end = len(words) - 1
    if _is_verb(words[start]) and not _is_noun_phrase(words, start):
        # `mark_message_read` marks, `search_replace` replaces, and `message_read` reads.
        return [start, *([end] if _only_verb(words[end]) else []), *joined]
    inner = [at for at in range(1, end) if _only_verb(words[at])]
    if inner and words[end] in ALSO_NOUNS:
        return [inner[0], *joined]
    if _is_verb(words[end]) and words[end] not in NOUNS_AT_THE_END:
        return [end, *joined]
    return [*inner[:1], *joined]


def _is_verb(word: str) -> bool:
    return word in VERBS


def _only_verb(word: str) -> bool:
    return word in VERBS and word not in ALSO_NOUNS


def _is_noun_phrase(words: Sequence[str], at: int) -> bool:
    """Say whether `order` is a noun, as in `order_status` and `order_cancel`."""
    rest = words[at + 1 :]
    if words[at] not in ALSO_NOUNS or len(rest) != 1:
        return False
    if _only_verb(rest[0]):
        return True
    sends = VERBS[words[at]] is Effect.SEND and rest[0] in SENDABLE
    return words[at] in NOUNS_AT_THE_START and bool(has_any(rest, STATES)) and not sends


def _is_unsure(words: Sequence[str], at: int) -> bool:
    """Say whether a verb can be something else, as in `checkout` and `file_version_history`."""
    if words[at] in AMBIGUOUS:
        return True
    return words[at] in NOUNS_AT_THE_START and bool(has_any(words[at + 1 :][-1:], STATES))


def _effect_at(words: Sequence[str], at: int) -> Effect | None:
    """Return the effect of the verb at a place, by the words around it."""
    after = words[at + 1 : at + 8]
    phrase: list[str] = []
    for word in after:
        if phrase and word in _ENDS_PHRASE:
            break
        phrase.append(word)
    around = [*phrase, *words[max(at - 3, 0) : at]]
    for form in present_forms(words[at]):
        effect = VERBS.get(form)
        if effect is not None:
            if form == "drop" and {"onto", "into"} & {*after}:
                return Effect.SEND
            return _refined(effect, form, phrase, around)
    return None


def _refined(
    effect: Effect, verb: str, phrase: Sequence[str], around: Sequence[str]
) -> Effect | None:
    """Return the effect of a verb with its object: to send money is to pay."""
    head = phrase[-1:]
    if effect is Effect.READ:
        return None if verb == "open" and not has_any(phrase, READABLE) else effect
    if effect is Effect.EXECUTE:
        return Effect.READ if verb == "run" and has_any(head, PROCESSES) else effect
    if effect is Effect.PAY:
        return None if verb == "transfer" and phrase and not has_any(around, MONEY) else effect
    if effect is Effect.ACCESS:
        return effect
    if has_any(around, ACCESS_THINGS):
        return Effect.ACCESS
    if effect is Effect.DELETE:
        return effect
    if verb not in STOPPING and has_any(around, MONEY):
        return Effect.PAY
    if verb in STARTING and has_any(head, ORDERS):
        return Effect.PAY
    if verb in STARTING and has_any(head, MESSAGES):
        return Effect.SEND
    return effect


def claims_of_description(declared: Declaration) -> list[Claim]:
    """Return the effects that a description says: its first sentence, and what it adds later."""
    found: list[Claim] = []
    for number, words in enumerate(sentences(declared.description)):
        if number == _MAX_SENTENCES:
            break
        found += _claims_of_sentence(_joined(words), first=number == 0)
    return found


def _claims_of_sentence(words: Sequence[str], *, first: bool) -> list[Claim]:
    """Read the leading verb and those joined to it. A later sentence must speak of the tool."""
    start = 0
    while start < len(words) and words[start] in _SUBJECTS:
        start += 1
    if not first and start == 0:
        return []
    found = []
    for at in range(start, len(words)):
        leads = at == start
        joins = words[at - 1] in _JOINS and _looks_like_verb(words, at)
        if not (leads or joins) or _negated(words, at):
            continue
        effect = _effect_at(words[start:], at - start)
        if effect is not None:
            found.append(Claim(effect, words[at], "description"))
    return found


def _looks_like_verb(words: Sequence[str], at: int) -> bool:
    """Say whether a word after `and` is a verb: `and order it`, but not `and order numbers`."""
    forms = present_forms(words[at])
    if not any(form in VERBS for form in forms):
        return False
    if any(form in ALSO_NOUNS for form in base_forms(words[at])):
        return words[at + 1 : at + 2] != [] and words[at + 1] in _OBJECTS
    return True


def _negated(words: Sequence[str], at: int) -> bool:
    return bool(set(words[max(at - 2, 0) : at]) & _NOT or set(words[at + 1 : at + 2]) & _NOTHING)
