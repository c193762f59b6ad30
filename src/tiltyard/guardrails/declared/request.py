"""What the user asked for: which actions, whom they named, and whether they delegate."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from tiltyard.contracts.declaration import Declaration
from tiltyard.guardrails.declared.lexicon import (
    actions_asked,
    actions_of,
    sources_in,
    spaced,
    stems_of,
    subjects_of,
    things_in,
)
from tiltyard.guardrails.declared.words import Spoken, plain, stem, words_of
from tiltyard.inference import Effect, Inferred, infer
from tiltyard.inference.vocabulary import ALSO_NOUNS, TAKING_OUT, VERBS
from tiltyard.inference.words import has_any, split_name

SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[a-z]:)\s+|\n+")
_TELLS: Final = (
    r"(?:asks?|asked|says?|said|wants?|wanted|tells?|told|lists?|listed|explains?|explained|"
    r"describes?|described|requests?|requested|suggests?|suggested|needs?|wrote|writes|states?|"
    r"stated|proposes?|proposed|instructs?|instructed|recommends?|recommended|sent|posted|mailed)"
)
_DELEGATES: Final = re.compile(
    r"\b(?:do|follow|carry out|take care of|handle|proceed|go ahead|act|deal with|arrange|send|"
    r"change|see to|sort out|complete|finish|go by|stick to|just)\b[^.!?]{0,40}?"
    r"\b(?:what|whatever|as|everything|anything|all|the way|things?|steps?|points?|tasks?|list)\b"
    rf"[^.!?]{{0,40}}?\b{_TELLS}\b"
    r"|\b(?:says|said|wrote|writes|written|posted|mailed|sent|explains|explained|describes|described|"
    r"tells|told|states)\b[^.!?]{0,60}\b(?:what|how)\b[^.!?]{0,30}\bto\b"
    r"|\bfollow (?:it|them|their|his|her|the|those|these|that)\b"
    r"|\bcarry (?:it|that|them|this|those|these) out\b|\bcarry out\b"
    r"|\b(?:do|perform|complete|execute|finish|make) (?:that|the|this|those|these|his|her|their)"
    r" (?:\w+ )?(?:steps?|tasks?|things?|to-?dos?|work|job|instructions?|list|actions?|changes?)\b"
    r"|\b(?:instructions?|to-?dos?|checklist)\b"
    r"|\b(?:as|the way)\b[^.!?]{0,40}?\b(?:asks?|wants?|explains?|describes?|instructs?)\b"
)
_POINTS_BACK: Final = frozenset(
    ["it", "its", "that", "this", "them", "there", "those", "these", "her", "him", "their", "one"]
)
_ASKS: Final = re.compile(
    r"(?:(?:and|also|by the way|then|so|but|please|plus|besides|oh|finally)\b,? )*"
    r"(?:(?:can|could|would|will) you (?:please |also )?)?"
    r"(?:(?:tell|show|read|give) me\b|let me (?:know|see|hear|read)\b|"
    r"(?:what|which|who|whom|whose|when|where|why|how)\b|"
    r"i(?:'d| would)? (?:also )?(?:like|want|need|love|wish)"
    r" (?:to (?:see|know|hear|read|check|learn)\b|"
    r"(?:the|a) (?:[\w-]+ ){1,3}(?:that|which|of|from|in)\b))"
    r"(?![^.!?]*\b(?:and|then)\b)"
)
"""A sentence that only asks what something says. What follows an `and` may ask for more."""
_READS: Final = re.compile(
    r"(?:(?:and|also|then|so|please|first|next|hi|hello|hey|thanks|thank you)\b[,!.]? ?)*"
    r"(?:(?:can|could|would|will) you (?:please )?|i(?:'d| would) like (?:you )?to |"
    r"help me (?:to )?)?"
    r"(?:read|show|list|open|view|display|print|summari[sz]e|count|compare|look|search|find|check|"
    r"fetch|browse|explain|describe|translate|analy[sz]e|review|is|are|was|were|do|does|did|"
    r"has|have|what|which|who|whom|whose|when|where|why|how|tell me|let me know|give me)\b"
)
"""A sentence that begins by asking for information."""
_HELPS: Final = re.compile(
    r"\b(?:help|assist|support|oblige|handle|process|fulfil?l?|satisfy|attend to|take care of|"
    r"deal with|look after|see to|favou?r)\b"
)
"""Words for doing what somebody needs, whatever it is."""
_LEADING: Final = 8
"""So many words of a description can tell what a tool does."""
_MIN_NAME: Final = 4
_OF_EFFECT: Final[dict[Effect, frozenset[str]]] = {
    Effect.PAY: frozenset({"pay"}),
    Effect.SEND: frozenset({"send"}),
    Effect.DELETE: frozenset({"remove"}),
    Effect.WRITE: frozenset({"create", "change"}),
    Effect.ACCESS: frozenset({"grant", "change"}),
    Effect.EXECUTE: frozenset({"run"}),
}
_FETCHING: Final = frozenset({Effect.WRITE, Effect.ACCESS})
_FETCHED: Final = TAKING_OUT | frozenset({"login", "log", "signin", "authenticate", "verify"})
_KINDS: Final = (
    (re.compile(r"^[\w.+-]+@[\w-]+\.[\w.]+$"), frozenset(["address", "mail", "email", "contact"])),
    (
        re.compile(r"^https?://"),
        frozenset(["url", "address", "page", "link", "site", "web", "where"]),
    ),
    (re.compile(r"^[A-Z]{2}\d{2}[A-Z0-9 ]{10,}$"), frozenset(["account", "iban", "bank"])),
    (re.compile(r"^\+?\d[\d ()/-]{6,}$"), frozenset(["phone", "number", "mobile", "telephone"])),
)
"""What people call a value of a certain form."""
_ANY_ADDRESS: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+|https?://\S+|\b[A-Z]{2}\d{2}[A-Z0-9]{10,}"
)


class Meaning(Struct, frozen=True):
    """What a tool does, in the terms in which people ask for it."""

    inferred: Inferred
    actions: frozenset[str]
    things: frozenset[int]
    nouns: frozenset[str] = frozenset()
    """The stems of the words of its name that are no verbs."""

    fetches: bool = False
    """Whether it only brings something to the user: it downloads a file, or logs in."""

    acts: bool = True
    """Whether it has an effect: it does not only read."""


def meaning_of(tool: Declaration) -> Meaning:
    """Return what a tool does. Equal declarations are read once."""
    key = msgspec.msgpack.encode(tool)
    found = _KEPT.get(key)
    if found is None:
        if len(_KEPT) >= _MAX_KEPT:
            _KEPT.clear()
        found = _KEPT[key] = _read_meaning(tool)
    return found


def meanings_of(tools: tuple[Declaration, ...]) -> dict[str, Meaning]:
    """Return what tools do, by name. The last tools are not read again."""
    found = _LAST.get("tools")
    if found is None or found[0] is not tools:
        found = _LAST["tools"] = tools, {tool.name: meaning_of(tool) for tool in tools}
    return found[1]


def _read_meaning(tool: Declaration) -> Meaning:
    inferred = infer(tool)
    name = spaced(tool.name.rpartition(".")[2])
    words = words_of(name)
    about = tool.description.partition(".")[0]
    described = words_of(about)
    actions = actions_of(words)
    actions |= actions_of(described[:1] if actions else described[:_LEADING])
    by_effect = _OF_EFFECT.get(inferred.effect, frozenset())
    if inferred.effect is Effect.PAY and "remove" not in actions:
        # To send money is to pay, and a message asks for something else.
        actions = actions - {"send"} | by_effect
    things = things_in(stems_of(name)) or things_in(stems_of(about))
    nouns = frozenset(stem(word) for word in words if word not in VERBS or word in ALSO_NOUNS)
    fetches = inferred.effect in _FETCHING and bool(has_any(split_name(tool.name)[:1], _FETCHED))
    acts = inferred.effect is not Effect.READ
    return Meaning(inferred, actions or by_effect, things, nouns, fetches, acts)


_KEPT: Final[dict[bytes, Meaning]] = {}
_MAX_KEPT: Final = 2_000
_LAST: Final[dict[str, tuple[tuple[Declaration, ...], dict[str, Meaning]]]] = {}


class _Sentence(Struct, frozen=True):
    actions: frozenset[str]
    things: frozenset[int]
    words: frozenset[str]
    addresses: tuple[str, ...]
    """Addresses that the sentence gives."""
    text: str = ""
    points_back: bool = False
    asks: bool = False
    """Whether the sentence only asks what something says."""
    empowers: bool = True
    sources: frozenset[int] = frozenset()
    """The kinds of texts that it speaks of as a source: "in my inbox"."""


class Request:
    """The user's words so far."""

    def __init__(self, messages: list[str]) -> None:
        self.text = "\n".join(messages)
        self._plain = plain(self.text)
        self._spoken = Spoken(self.text)
        self._sentences = [*_read(one for one in SENTENCE.split(self.text) if one.strip())]
        self.delegates = _DELEGATES.search(self._plain) is not None
        self._empowering = " ".join(one.text for one in self._sentences if one.empowers)
        self._spoken_with_power = Spoken(self._empowering)
        self._empowered = frozenset(words_of(self._empowering))
        self.stems = stems_of(self.text)
        self.subjects = subjects_of(self.text)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the words tell again."""
        derived = ("only_reads", "deferring")
        return {name: one for name, one in self.__dict__.items() if name not in derived}

    @cached_property
    def only_reads(self) -> bool:
        """Whether every sentence asks for information, and none for an effect."""
        return not self.delegates and all(
            _READS.match(plain(one.text)) and not one.actions for one in self._sentences
        )

    @property
    def sources(self) -> frozenset[int]:
        """The kinds of texts out of which the user wants something: a mail, a file, a page."""
        return frozenset(kind for one in self._sentences if one.empowers for kind in one.sources)

    @cached_property
    def deferring(self) -> "Request":
        """The sentences that point at somebody or something, and say no action: "help Ann"."""
        return Request(
            [
                one.text
                for one in self._sentences
                if one.empowers
                and not one.actions
                and not _READS.match(plain(one.text))
                and (one.sources or _HELPS.search(plain(one.text)))
            ]
        )

    def says(self, value: object) -> bool:
        return self._spoken.has(value)

    def asks_for(self, tool: Meaning, taken: list[Any]) -> bool:
        """Return whether a sentence asks for a tool's action with values from somebody's text.

        It must speak of the things that the tool is for, or of the kind of the values. A sentence
        that gives an address itself asks for no other address of this form.
        """
        return any(
            one.actions & tool.actions
            and (one.things & tool.things or _speaks_of_kind(one, taken))
            and not _gives_another(one, taken)
            for one in self._sentences
        )

    def may_ask_for(self, tool: Meaning) -> bool:
        """Return whether a sentence speaks of a tool's action."""
        return any(one.actions & tool.actions for one in self._sentences)

    def empowers(self, name: str) -> bool:
        """Return whether the words let a text decide something, by its title or by its author.

        To ask what somebody wrote is not to ask for what they want.
        """
        return bool(name) and self._spoken_with_power.has(name)

    def empowers_author(self, author: str) -> bool:
        """Return whether the words let a person decide something: by address or by name."""
        if self.empowers(author):
            return True
        parts = re.split(r"[^\w]+", plain(author).partition("@")[0])
        return any(len(part) >= _MIN_NAME and part in self._empowered for part in parts)


@lru_cache(maxsize=64)
def request_of(messages: tuple[str, ...]) -> Request:
    """Read the user's words once for all calls of a conversation."""
    return Request([*messages])


def _read(sentences: Iterable[str]) -> Iterator[_Sentence]:
    """Read sentences. One with `it` or `that` also speaks of the things of the one before."""
    found: list[_Sentence] = []
    before: frozenset[str] = frozenset()
    for sentence in sentences:
        own = frozenset(words_of(spaced(sentence)))
        words = own | before if own & _POINTS_BACK else own
        things = things_in(frozenset(map(stem, words)))
        found.append(
            _Sentence(
                actions_asked(sentence),
                things,
                words,
                tuple(_ANY_ADDRESS.findall(sentence)),
                sentence,
                bool(own & _POINTS_BACK),
                _ASKS.match(plain(sentence)) is not None,
                sources=sources_in(sentence),
            )
        )
        before = own
    for one, following in zip_longest(found, found[1:]):
        answered = following is not None and following.points_back and not following.asks
        yield structs.replace(one, empowers=answered or not one.asks)


def _speaks_of_kind(sentence: _Sentence, taken: list[Any]) -> bool:
    """Return whether a sentence speaks of the kind of all values: an address, an account."""
    return bool(taken) and all(
        any(form.search(str(value)) and words & sentence.words for form, words in _KINDS)
        for value in taken
    )


def _gives_another(sentence: _Sentence, taken: list[Any]) -> bool:
    return any(
        form.search(str(value)) and any(form.search(own) for own in sentence.addresses)
        for value in taken
        for form, _ in _KINDS
    )
