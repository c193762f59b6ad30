"""General vocabulary: what people and tools call the same action or the same thing.

Tool names and requests go through the same lists. So `revoke_invitation` and "take the invitation
back" meet in the action `remove`. No list knows a tool or a request.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from tiltyard.guardrails.declared.words import MAX_KEPT_CHARS, stem, words_of
from tiltyard.inference.vocabulary import ALSO_NOUNS, word_set

_ACTIONS: Final[dict[str, str]] = {
    "remove": (
        "delete remove cancel drop clear stop erase discard trash bin unsubscribe end "
        "close revoke withdraw kick purge unshare retract quit terminate wipe expel ban "
        "destroy unlink exclude deactivate eject scrap dump detach empty rm uninstall "
        "unpublish abolish chuck toss"
    ),
    "send": (
        "send mail email message tell reply answer forward write post inform notify text "
        "ping ask remind announce dm submit report respond comment thank publish feed "
        "broadcast deliver upload compose invite pass let say dispatch hand sign drop "
        "contact quote fill input"
    ),
    "pay": (
        "pay settle transfer wire remit refund buy order purchase book reserve owe "
        "reimburse repay donate deposit rent subscribe checkout spend sponsor charge "
        "contribute money give payment"
    ),
    "create": (
        "create add write save make schedule book plan new store note log record draft "
        "file enter register reserve insert keep append compose prepare hold block "
        "arrange organize put set open build upload leave place start fill"
    ),
    "change": (
        "change update edit move rename adjust set reschedule modify replace fix correct "
        "raise lower increase reduce extend postpone shift bring push switch turn mark "
        "label assign pin reopen merge archive approve accept release stretch shorten "
        "make enter save patch amend revise convert configure put reset rotate mv swap "
        "decline confirm complete resolve cut delay advance keep store tag star unpin "
        "close"
    ),
    "grant": (
        "share grant allow permit invite authorize add appoint delegate let give promote "
        "demote make set publish unlock restrict include visible public private admin"
    ),
    "run": (
        "run execute start launch build deploy restart call invoke trigger shell command "
        "script echo curl mv rm cp cat bash terminal"
    ),
}
_PHRASES: Final = tuple(
    (action, frozenset(first.split()), re.compile(form))
    for action, first, form in (
        (
            "remove",
            "take throw thrown taken get kick call cross strike cut pull",
            (
                r"\b(take|throw|thrown|taken|get|kick|call|cross|strike|cut|pull)\b[^.!?;]{0,30}?"
                r"\b(out|off|away|rid|down|back)\b"
            ),
        ),
        (
            "remove",
            "go leave",
            r"\b(can|should|must|may|has to|have to|needs? to) (go|leave)\b(?! to)",
        ),
        (
            "create",
            "put write jot take note set",
            r"\b(put|write|jot|take|note)\b[^.!?;]{0,30}?\bdown\b|\bset\b[^.!?;]{0,30}?\bup\b",
        ),
        (
            "grant",
            "set right rights access role",
            r"\bset\b[^.!?;]{0,30}?\bup\b|\b(rights?|access|role)\b",
        ),
        (
            "send",
            "send give write call get",
            r"\b(send|give|write|call)\b[^.!?;]{0,30}?\bback\b|\bget\b[^.!?;]{0,30}?\bknow\b",
        ),
    )
)
"""Actions that need more than one word, each with words of which one is always among them."""
_THINGS: Final = (
    "mail email inbox mailbox letter correspondence newsletter outbox",
    "message dm direct private chat line conversation",
    "post channel announcement thread topic everybody notice",
    ("event meeting appointment calendar entry agenda visit dentist reminder session tour lunch"),
    "invitation invite guest attendee participant join request",
    "member workspace team user people colleague person everybody account role admin",
    "file document upload attachment folder directory pdf csv txt docx md",
    (
        "payment transfer money sum amount pay wire bill invoice fee deposit price rent "
        "debt euro fund donate contribution refund due bank"
    ),
    ("standing recurring monthly month subscription instalment regular repeat schedule rent"),
    "contact card book address phone",
    "profile customer contact personal details street city",
    "password passcode pin login credential passphrase",
    ("setting preference configuration configure option recovery forward webhook retention zone"),
    (
        "access permission share sharing right mandate authorization delegate visible "
        "public authorize view viewer"
    ),
    "limit cap maximum ceiling",
    "hotel stay night flight car restaurant table trip seat reservation reserve",
    "room hall desk resource",
    "product item cart basket parcel shipment delivery return package shop",
    "issue ticket bug milestone label comment project branch board release task",
    "command shell script terminal program",
    "url web site webhook endpoint page link http https api form post",
    "draft",
)
"""Words for the same kind of thing."""
_WEAK: Final = frozenset(
    ["the", "a", "an", "of", "to", "for", "in", "on", "at", "by", "is", "it", "this", "that",
     "with", "from", "as", "be"]
)  # fmt: skip
_ARTICLES: Final = frozenset(
    ["the", "a", "an", "this", "that", "their", "his", "her", "its", "my", "our", "your"]
)
_PREPOSITIONS: Final = frozenset(
    ["in", "on", "from", "as", "by", "of", "at", "with", "under", "per", "after", "before", "about"]
)
_POLITE: Final = frozenset(["please", "kindly", "also", "first", "now", "then", "just", "and"])
_PASSIVE: Final = frozenset(["be", "get", "gets", "being", "want", "need", "needs", "is", "are"])
_SMALL: Final = word_set(
    "about above according after again also always because been before best could dear does "
    "each from have hello here however into just know like made many might more most much must "
    "need only other over please regards same should some still such than thank thanks that "
    "their them then there these they this those time today tomorrow under until very want well "
    "were what when where which while will with within would your yours if any"
)
_NAMED: Final = re.compile(
    r"(?<!\w)(?:https?://|www\.|[~./\\])*[\w-]+(?:[./\\@:][\w-]+)*[.@][a-z][\w-]*(?:/\S*)?"
)
"""Files and addresses: `note.txt` asks nobody to note something."""
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_REACH: Final = 3
"""How far `be` can stand before its participle."""

_BY_WORD: Final[dict[str, frozenset[str]]] = {
    word: frozenset(action for action, words in _ACTIONS.items() if word in words.split())
    for words in _ACTIONS.values()
    for word in words.split()
}
_TEXTS: Final = frozenset(
    number
    for number, words in enumerate(_THINGS)
    if {"mail", "message", "post", "file", "issue", "page"} & {*words.split()}
)
"""The groups of things that people write texts in."""
_SOURCE_WORDS: Final = frozenset(
    ["in", "from", "per", "by", "according", "on", "check", "read", "see", "review", "open",
     "follow", "consult", "via", "through", "within", "using", "handle", "process", "do"]
)  # fmt: skip
"""Words before something that is read."""
_BY_STEM: Final = {stem(word): actions for word, actions in _BY_WORD.items()}
_THING_STEMS: Final = tuple(frozenset(map(stem, words.split())) for words in _THINGS)


def actions_asked(sentence: str) -> frozenset[str]:
    """Return the actions that a sentence asks for.

    "They sent" and "she asks" tell what others do. So only plain forms count, and participles
    after `be`: "it should be deleted". "In a comment" says where something stands.
    """
    return _asked_kept(sentence) if len(sentence) <= MAX_KEPT_CHARS else _asked(sentence)


def _asked(sentence: str) -> frozenset[str]:
    if "." in sentence or "@" in sentence:
        sentence = _NAMED.sub("x", sentence)
    words = words_of(sentence)
    found: set[str] = set()
    for at, word in enumerate(words):
        actions = _BY_WORD.get(word)
        if actions is None:
            if not word.endswith("ing") and not (
                word.endswith("ed") and _PASSIVE & {*words[max(0, at - _REACH) : at]}
            ):
                continue
            actions = _BY_STEM.get(stem(word))
            if actions is None:
                continue
        if at > 1 and words[at - 1] in _ARTICLES and words[at - 2] in _PREPOSITIONS:
            continue
        found |= actions
    low = sentence.casefold()
    single = None if "'" in low or "\u2019" in low else {*words}
    for action, first, form in _PHRASES:
        # In "let's", a phrase may begin with a part of what `words_of` takes for one word.
        may_be = action not in found and (single is None or not first.isdisjoint(single))
        if may_be and form.search(low):
            found.add(action)
    return frozenset(found)


_asked_kept = lru_cache(maxsize=4_096)(_asked)


def actions_ordered(sentence: str) -> frozenset[str]:
    """Return the actions that a sentence of somebody else asks for.

    A verb that is also a noun is a noun behind an article: "find it in the attached file".
    """
    words = words_of(sentence)
    nouns = {
        word
        for at, word in enumerate(words)
        if word in ALSO_NOUNS and (_ARTICLES | _PREPOSITIONS) & {*words[max(0, at - 2) : at]}
    }
    return actions_asked(
        " ".join(word for word in words if word not in nouns) if nouns else sentence
    )


def begins_with_order(text: str) -> bool:
    """Return whether a text begins with a verb, and is longer than a title."""
    return _begins_kept(text[:200])


@lru_cache(maxsize=4_096)
def _begins_kept(start: str) -> bool:
    words = [word for word in words_of(start) if word not in _POLITE]
    return len(words) > _REACH and words[0] in _BY_WORD


def actions_of(words: Iterable[str]) -> frozenset[str]:
    """Return the actions of the first word that names one, in any form."""
    for word in words:
        found = _BY_WORD.get(word) or _BY_STEM.get(stem(word))
        if found:
            return found
    return frozenset()


def things_in(words: frozenset[str]) -> frozenset[int]:
    """Return the numbers of the groups of things that stems speak of."""
    return frozenset(number for number, known in enumerate(_THING_STEMS) if known & words)


def sources_in(sentence: str) -> frozenset[int]:
    """Return the kinds of texts that a sentence speaks of as a source: "in my inbox"."""
    words = words_of(sentence)
    found: set[int] = set()
    for at, word in enumerate(words):
        if _SOURCE_WORDS & {*words[max(0, at - _REACH) : at]}:
            found |= things_in(frozenset([stem(word)])) & _TEXTS
    return frozenset(found)


def spaced(name: str) -> str:
    """Return a tool's name as words."""
    return _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")


def stems_of(text: str) -> frozenset[str]:
    return _stems_kept(text) if len(text) <= MAX_KEPT_CHARS else _stems(text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(spaced(text)) if word not in _WEAK)


_stems_kept = lru_cache(maxsize=4_096)(_stems)


def subjects_of(text: str) -> frozenset[str]:
    """Return the stems of what a text is about: neither actions, nor things, nor small words."""
    return _subjects_kept(text) if len(text) <= MAX_KEPT_CHARS else _subjects(text)


def _subjects(text: str) -> frozenset[str]:
    return frozenset(
        stem(word)
        for word in words_of(text)
        if len(word) > _REACH
        and word not in _BY_WORD
        and word not in _SMALL
        and not things_in(frozenset([stem(word)]))
    )


_subjects_kept = lru_cache(maxsize=4_096)(_subjects)
