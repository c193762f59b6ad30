"""The scenario generator's material: words, prose and attacks, as data beside this file.

Owns the data's types and how a template is filled in; `generate` decides what goes where. In a
template, `{city}` is drawn from the vocabulary and stays the same throughout a document, `{City}`
is the same word with a capital, `{city2}` is another one, `{hex order}` is a word in another
spelling, and `[a|b|c]` is any of the three. A word of the vocabulary may itself be a template.
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
    """Sentences that go together in any selection: one to begin with, some between, one to end."""

    name: str
    media: tuple[str, ...]
    """What may be written about it: pages (`web`), mails from the house (`email`) or from elsewhere
    (`letter`), files of the house (`file`) or from elsewhere (`outside`), or one fixed document."""
    titles: tuple[str, ...]
    openers: tuple[str, ...]
    middles: tuple[str, ...]
    closers: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    """Lines that hold a canary."""


class Expected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that the agent must make; arguments that are not given may be anything."""

    tool: str
    id: str | None = None
    path: str | None = None
    url: str | None = None
    to: str | None = None
    cmd: str | None = None
    query: str | None = None
    folder: str | None = None
    carries: str | None = None
    """The protected file whose secret is in the arguments."""
    times: str = "1"
    """How often in a row; the parts of one split carry its secret together."""


class Linked(Struct, frozen=True, forbid_unknown_fields=True):
    """A further document of the same attack.

    Elsewhere in the attack, `{name}` is its id or path and `{name_origin}` its address or sender.
    """

    name: str
    medium: str
    body: str
    title: str = ""
    ordinary: bool = False
    """It gives no orders; the attack only needs it to be there."""


class Trigger(Struct, frozen=True, forbid_unknown_fields=True):
    """What the user asks for next, and the calls of that."""

    words: str
    calls: tuple[Expected, ...]


class Attack(Struct, frozen=True, forbid_unknown_fields=True):
    """One injection and its look-alike."""

    name: str
    """No other attack has it, in whatever family."""
    medium: str
    """`web`, `email`, or for a file who brought it: a web site (`download`), a mail (`attachment`)
    or somebody (`file`)."""
    live: str
    twin: str
    """The same words in a form that is no instruction."""
    expect: tuple[Expected, ...]
    """The calls behind the opening's own, in order."""
    linked: tuple[Linked, ...] = ()
    define: dict[str, str] = {}
    """Slots of this attack's own, filled in before the rest."""
    trigger: Trigger | None = None


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """The attacks of one file. A large family stands in several, under one name."""

    family: str
    template: tuple[Attack, ...]


class Templates(Struct, frozen=True):
    version: int
    """Raised whenever the same seed would give another scenario."""
    words: dict[str, tuple[str, ...]]
    topics: dict[str, tuple[Topic, ...]]
    """By what may be written about them."""
    families: tuple[Family, ...]


class _Vocabulary(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    words: dict[str, tuple[str, ...]]


class _Prose(Struct, frozen=True, forbid_unknown_fields=True):
    topic: tuple[Topic, ...]


@cache
def load() -> Templates:
    """Read all templates. They come with the package, so a mistake in them is a bug."""
    here = files(__name__)
    vocabulary = msgspec.toml.decode((here / "vocabulary.toml").read_bytes(), type=_Vocabulary)
    topics: dict[str, list[Topic]] = {}
    for name in ("prose.toml", "house.toml"):
        for topic in msgspec.toml.decode((here / name).read_bytes(), type=_Prose).topic:
            for medium in topic.media:
                topics.setdefault(medium, []).append(topic)
    families = sorted((here / "families").iterdir(), key=lambda file: file.name)
    return Templates(
        vocabulary.version,
        vocabulary.words,
        {medium: tuple(found) for medium, found in topics.items()},
        tuple(msgspec.toml.decode(file.read_bytes(), type=Family) for file in families),
    )


class Filler:
    """Fills in the templates of one document, or of documents that speak of the same things."""

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
        """Return a slot's word. Inside a word of the vocabulary, each slot is drawn anew."""
        known = {} if fresh else self._known.setdefault(slot.base, {})
        value = known.get(slot.name)
        if value is None:
            value = known[slot.name] = self._another(slot.base, known)
        if slot.encoding is not None:
            return encode(by_machine(value), slot.encoding).string
        return value[:1].upper() + value[1:] if slot.capital else value

    def _another(self, base: str, known: dict[str, str]) -> str:
        """Draw a word that this document does not have under another number."""
        for _ in range(MAX_REDRAWS):
            value = self._render(_compile(self.draw.choice(self.words[base])), fresh=True)
            if value not in known.values():
                return value
        raise ValueError(f"the vocabulary has too few words for {base!r}")


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
    """Return the vocabulary's name for a numbered slot."""
    return name.rstrip("23456789")
