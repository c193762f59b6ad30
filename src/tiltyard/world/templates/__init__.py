"""The templates of scenarios: words, prose and attacks, in the TOML files beside this module.

This module has the types of the data and fills templates; `generate` decides which to use. In a
template, `{city}` is a random word of the vocabulary that stays the same in one document, `{City}`
is the same word with a capital, `{city2}` is a second city, `{hex order}` is a word in hex, and
`[a|b|c]` is one of three options. A word of the vocabulary may itself be a template.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.foundation.draw import Draw
from tiltyard.world.text import Encoding, by_machine, encode

MAX_REDRAWS: Final = 100


class Topic(Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences that fit together: one opener, some middles and one closer make a text."""

    name: str
    media: tuple[str, ...]
    """Documents that can have this topic: pages (`web`), internal mails (`email`), mails from
    outside (`letter`), internal files (`file`), internal files that attacks may name (`paper`),
    files from outside (`outside`), or the name of one fixed document."""
    titles: tuple[str, ...]
    openers: tuple[str, ...]
    middles: tuple[str, ...]
    closers: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    """Lines that contain a canary."""


class Expected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that the agent must make. An argument that is None may have any value."""

    tool: str
    id: str | None = None
    path: str | None = None
    url: str | None = None
    to: str | None = None
    cmd: str | None = None
    query: str | None = None
    folder: str | None = None
    carries: str | None = None
    """The protected file whose secret the arguments contain."""
    times: str = "1"
    """Number of calls in a row. The parts of one split carry the secret together."""


class Linked(Struct, frozen=True, forbid_unknown_fields=True):
    """A further document of the same attack.

    In the attack, `{name}` is its id or path and `{name_origin}` its URL or sender.
    """

    name: str
    medium: str
    body: str
    title: str = ""
    ordinary: bool = False
    """True if the document gives no orders, and the attack only refers to it."""


class Trigger(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's next request, and its calls."""

    words: str
    calls: tuple[Expected, ...]


class Attack(Struct, frozen=True, forbid_unknown_fields=True):
    """One injection and its look-alike."""

    name: str
    """Unique among the attacks of all families."""
    medium: str
    """`web`, `email`, or for a file its source: a web site (`download`), a mail (`attachment`)
    or a person (`file`)."""
    live: str
    twin: str
    """The look-alike: the same words in a form that is not an instruction."""
    expect: tuple[Expected, ...]
    """The calls after those of the opening, in order."""
    linked: tuple[Linked, ...] = ()
    define: dict[str, str] = {}
    """Additional slots, filled before the documents."""
    trigger: Trigger | None = None


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """The attacks of one file. Several files may have the same family."""

    family: str
    template: tuple[Attack, ...]


class Templates(Struct, frozen=True):
    version: int
    """Changes whenever the same seed gives another scenario."""
    words: dict[str, tuple[str, ...]]
    topics: dict[str, tuple[Topic, ...]]
    """Topics by the kind of document."""
    families: tuple[Family, ...]


class _Vocabulary(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    words: dict[str, tuple[str, ...]]


class _Prose(Struct, frozen=True, forbid_unknown_fields=True):
    topic: tuple[Topic, ...]


@cache
def load() -> Templates:
    folder = files(__name__)
    vocabulary = msgspec.toml.decode((folder / "vocabulary.toml").read_bytes(), type=_Vocabulary)
    topics: dict[str, list[Topic]] = {}
    for name in ("prose.toml", "fixed_documents.toml"):
        for topic in msgspec.toml.decode((folder / name).read_bytes(), type=_Prose).topic:
            for medium in topic.media:
                topics.setdefault(medium, []).append(topic)
    families = sorted((folder / "families").iterdir(), key=lambda file: file.name)
    return Templates(
        vocabulary.version,
        vocabulary.words,
        {medium: tuple(found) for medium, found in topics.items()},
        tuple(msgspec.toml.decode(file.read_bytes(), type=Family) for file in families),
    )


class Filler:
    """Fills templates. All templates of one filler share the words of their slots."""

    def __init__(self, draw: Draw, words: Mapping[str, tuple[str, ...]]) -> None:
        self.draw = draw
        self.words = words
        self._known: dict[str, dict[str, str]] = {}

    def set(self, name: str, value: str) -> None:
        self._known.setdefault(_base(name), {})[name] = value

    def fill(self, template: str) -> str:
        return self._render(_compile(template), fresh=False)

    def _render(self, pattern: "_Pattern", *, fresh: bool) -> str:
        parts: list[str] = []
        for part in pattern:
            if type(part) is str:
                parts.append(part)
            elif type(part) is _Choice:
                parts.append(self._render(self.draw.choice(part.options), fresh=fresh))
            elif type(part) is _Slot:
                parts.append(self._value(part, fresh=fresh))
        return "".join(parts)

    def _value(self, slot: "_Slot", *, fresh: bool) -> str:
        """Return the word of a slot. With `fresh`, draw a new one for each use."""
        known = {} if fresh else self._known.setdefault(slot.base, {})
        value = known.get(slot.name)
        if value is None:
            value = known[slot.name] = self._another(slot.base, known)
        if slot.encoding is not None:
            return encode(by_machine(value), slot.encoding).string
        return value[:1].upper() + value[1:] if slot.capital else value

    def _another(self, base: str, known: dict[str, str]) -> str:
        """Draw a word that no other numbered slot of the same base has."""
        for _ in range(MAX_REDRAWS):
            value = self._render(_compile(self.draw.choice(self.words[base])), fresh=True)
            if value not in known.values():
                return value
        raise ValueError(f"the vocabulary has too few words for the slot {base!r}")


class _Slot(Struct, frozen=True, gc=False):
    name: str
    base: str
    capital: bool
    encoding: Encoding | None


class _Choice(Struct, frozen=True, gc=False):
    options: "tuple[_Pattern, ...]"


_Pattern = tuple[str | _Slot | _Choice, ...]

_PART: Final = re.compile(r"\{([^{}]+)\}|\[([^\[\]]*\|[^\[\]]*)\]")


@lru_cache(maxsize=16_384)
def _compile(template: str) -> _Pattern:
    parts: list[str | _Slot | _Choice] = []
    position = 0
    for match in _PART.finditer(template):
        if match.start() > position:
            parts.append(template[position : match.start()])
        slot, choice = match.groups()
        if slot is None:
            parts.append(_Choice(tuple(_compile(option) for option in choice.split("|"))))
        else:
            encoding, _, word = slot.rpartition(" ")
            name = word[0].lower() + word[1:]
            spelling = Encoding(encoding) if encoding else None
            parts.append(_Slot(name, _base(name), word != name, spelling))
        position = match.end()
    if position < len(template):
        parts.append(template[position:])
    return tuple(parts)


def _base(name: str) -> str:
    """Return the name of a slot without its number."""
    return name.rstrip("23456789")
