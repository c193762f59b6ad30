"""Pick the harmless documents of a scenario that benign tasks are about.

A document is harmless if no label marks it as a live injection and the agent's grammar finds no
instruction in it. The second test makes scenarios without labels usable. A protected file is never
part of a task.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tiltyard.agents.grammar import instructions
from tiltyard.benign.tasks import StagingError
from tiltyard.foundation.draw import Draw
from tiltyard.world import files
from tiltyard.world.mail import INBOX
from tiltyard.world.scenario import Scenario
from tiltyard.world.templates import Filler
from tiltyard.world.text import by_user, lower
from tiltyard.world.urls import is_internal_host, read_address, read_url

WEB: Final = "web"
EMAIL: Final = "email"
FILE: Final = "file"
HOWTO: Final = "howto"
RANKS: Final = ("first", "second", "third")
RANDOM_TRIES: Final = 32
LISTED_MAILS: Final = 20
"""How many mails of the inbox the agent lists when the user names only a sender."""

_NAME: Final = re.compile(r"(?=.*[0-9._/-])[A-Za-z0-9][\w./-]*\w", re.ASCII)
"""A name that needs no quotes in a message or a command and is not a word of the grammar."""
_ADDRESS: Final = re.compile(r"[\w.+-]+@[\w.-]+\w", re.ASCII)
_QUOTABLE: Final = re.compile(r'[^"“”\n]{1,200}')
_WORD: Final = re.compile(r"[A-Za-z]{4,}")


class Document(Struct, frozen=True):
    """A page, mail or file that a task can be about."""

    medium: str
    id: str
    """The id of a page or mail, the path of a file."""
    text: str
    title: str = ""
    origin: str = ""
    """A page's address, a mail's sender."""
    folder: str = ""
    called: str = ""
    """The user's name for the document; empty if the user says the id."""
    query: str = ""
    """The search that finds the document."""
    rank: str = ""
    """The document's place among the results: first, second or third."""

    @property
    def key(self) -> str:
        return f"{self.medium}:{self.id}"

    def slots(self) -> dict[str, str]:
        """Return the values of the document's slots, by the suffix of the slot's name."""
        word = _WORD.search(self.text)
        return {
            "": self.called or self.id,
            "_document": self.key,
            "_text": self.text,
            "_title": self.title,
            "_origin": self.origin,
            "_folder": self.folder,
            "_word": word.group() if word else "",
            "_asked": self.query,
            "_query": self.query if self.query == HOWTO else f'"{self.query}"',
            "_rank": self.rank,
        }


class Preferences(Struct, frozen=True):
    """Which document of a kind a task prefers."""

    taken: frozenset[str] = frozenset()
    """Documents that the task uses already; prefer others."""
    lookalike: bool = False
    """Prefer a harmless document that looks like an injection."""
    plain: bool = False
    """Prefer a document without a word that looks secret."""


class _Filter(Struct, frozen=True):
    taken: frozenset[str]
    lookalike: bool | None
    """None accepts look-alikes and other documents."""
    plain: bool


class DocumentPicker:
    """Sorts the documents of one scenario by kind and draws from them."""

    def __init__(self, scenario: Scenario, secret_looking: tuple[str, ...]) -> None:
        self.scenario = scenario
        self.world = scenario.world
        self._secret_looking = secret_looking
        planted = scenario.labels.planted
        self._live = {entry.document for entry in planted if entry.live}
        self._lookalikes = {entry.document for entry in planted if not entry.live}
        self._protected = {entry.path for entry in scenario.labels.protected}
        self._by_kind: dict[str, list[Document]] = {}

    def pick(self, kind: str, draw: Draw, preferences: Preferences) -> Document:
        """Draw a harmless document of `kind`, following `preferences` as far as possible."""
        lookalikes_first = preferences.lookalike and kind in _MAY_LOOK_ALIKE
        # A scenario without labels, or a small one, may not meet all preferences: drop them one by
        # one. A file to change or delete must always be one that the task does not use elsewhere.
        for plain, fresh in ((preferences.plain, True), (False, True), (False, False)):
            for name in (kind, *_FALLBACKS[kind]):
                for lookalike in (lookalikes_first, None):
                    taken = preferences.taken if fresh else frozenset[str]()
                    found = self._first(name, draw.branch(name), _Filter(taken, lookalike, plain))
                    if found is not None and (fresh or kind != "target"):
                        return found
        raise StagingError(f"the scenario has no harmless {_DESCRIPTIONS[kind]}")

    def _first(self, kind: str, draw: Draw, wanted: "_Filter") -> Document | None:
        candidates = self._candidates(kind)
        for position in _positions_to_try(len(candidates), draw):
            document = candidates[position]
            if self._passes(document, wanted):
                reachable = self._as_reached(kind, document)
                if reachable is not None and not instructions(by_user(document.text)):
                    return reachable
        return None

    def _passes(self, document: Document, wanted: "_Filter") -> bool:
        if document.key in wanted.taken or (wanted.plain and not self._is_plain(document)):
            return False
        return wanted.lookalike in (None, document.key in self._lookalikes)

    def _as_reached(self, kind: str, document: Document) -> Document | None:
        """Return `document` with the search that leads to it; None if no search does."""
        return self._by_search(document, document.title) if kind == "found" else document

    def may_hold_strangers_words(self, document: str) -> bool:
        medium, _, name = document.partition(":")
        return medium in (WEB, EMAIL) or name in self.scenario.labels.outside

    def is_free(self, path: str) -> bool:
        """Tell whether a new file can be written at `path`."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        nodes = [files.find(self.world.files, each) for each in above]
        return files.find(self.world.files, path) is None and not any(
            isinstance(node, files.File) for node in nodes
        )

    def is_external(self, url: str) -> bool:
        target = read_url(url)
        return target is not None and not is_internal_host(target, self.world.site.internal_domains)

    def _candidates(self, kind: str) -> list[Document]:
        found = self._by_kind.get(kind)
        if found is None:
            found = self._by_kind[kind] = [*_KINDS[kind](self)]
        return found

    @cached_property
    def pages(self) -> list[Document]:
        return [*self._pages()]

    @cached_property
    def mails(self) -> list[Document]:
        return [*self._mails()]

    @cached_property
    def all_files(self) -> list[Document]:
        return [*self._files()]

    def own_files(self) -> Iterator[Document]:
        """Yield the files that the user's own organization wrote."""
        return (each for each in self.all_files if each.id not in self.scenario.labels.outside)

    def answerable(self, *, internal: bool | None = None) -> Iterator[Document]:
        """Yield mails whose sender has a valid address: all, or only internal or external ones."""
        for each in self.mails:
            sender = read_address(each.origin) if _ADDRESS.fullmatch(each.origin) else None
            is_internal = sender is not None and self.world.site.is_internal_address(sender)
            if sender is not None and internal in (None, is_internal):
                yield each

    def listed(self) -> Iterator[Document]:
        """Yield the mails that the agent finds by the name of the sender."""
        inbox = self.world.mail.seed.mails(INBOX) or ()
        first = {lower(mail.sender): mail.id for mail in reversed(inbox[:LISTED_MAILS])}
        senders = [lower(mail.sender) for mail in inbox[:LISTED_MAILS]]
        for each in self.answerable():
            sender = lower(each.origin)
            match = next((other for other in senders if sender in other), "")
            if match and first[match] == each.id:
                yield each

    def latest(self) -> Iterator[Document]:
        inbox = self.world.mail.seed.mails(INBOX) or ()
        return (each for each in self.mails if inbox and each.id == inbox[0].id)

    def filed(self) -> Iterator[Document]:
        """Yield the first mail of each folder."""
        firsts = {mails[0].id for mails in self.scenario.folders.values() if mails}
        return (each for each in self.mails if each.id in firsts and each.folder.isalnum())

    def addressed(self) -> Iterator[Document]:
        """Yield pages that the user names by their URL."""
        for each in self.pages:
            found = self.world.web.find(each.origin) if read_url(each.origin) else None
            if found is not None and found.id == each.id:
                yield replace(each, called=each.origin)

    def welcome(self) -> Iterator[Document]:
        found = self.world.web.find("welcome")
        if found is not None:
            pages = (each for each in self.pages if each.id == found.id)
            yield from (replace(each, called="welcome") for each in pages)

    def howto(self) -> Iterator[Document]:
        hits = {hit.id for hit in self.world.web.search(HOWTO, neutral=False).hits}
        found = (self._by_search(each, HOWTO) for each in self.pages if each.id in hits)
        return (each for each in found if each is not None)

    def secretive(self) -> Iterator[Document]:
        """Yield harmless files whose names look like the name of a secret."""
        signs = (*self._secret_looking, "key", "passport")
        return (each for each in self.own_files() if any(sign in lower(each.id) for sign in signs))

    def _pages(self) -> Iterator[Document]:
        for page in self.scenario.pages:
            if _NAME.fullmatch(page.id) and f"{WEB}:{page.id}" not in self._live:
                yield Document(WEB, page.id, page.content, page.title, page.url)

    def _mails(self) -> Iterator[Document]:
        for folder, mails in sorted(self.scenario.folders.items()):
            for mail in mails:
                if _NAME.fullmatch(mail.id) and f"{EMAIL}:{mail.id}" not in self._live:
                    yield Document(EMAIL, mail.id, mail.body, mail.subject, mail.sender, folder)

    def _files(self) -> Iterator[Document]:
        for path, text in sorted(self.scenario.files.items()):
            excluded = f"{FILE}:{path}" in self._live or path in self._protected
            if not excluded and _NAME.fullmatch(path) and _WORD.search(text):
                yield Document(FILE, path, text)

    def _by_search(self, page: Document, query: str) -> Document | None:
        """Return `page` with its rank among the results of `query`; None if it is further down."""
        hits = self.world.web.search(query, neutral=False).hits
        for rank, hit in zip(RANKS, hits, strict=False):
            if hit.id == page.id:
                return replace(page, query=query, rank=rank)
        return None

    def _is_plain(self, document: Document) -> bool:
        texts = document.id, document.text, document.title, document.origin
        lowered = [*map(lower, texts)]
        return not any(word in text for word in self._secret_looking for text in lowered)


def medium_of_kind(kind: str) -> str:
    """Return the medium of the documents of a kind."""
    return WEB if kind in _PAGES else EMAIL if kind in _MAILS else FILE


def draw_opening(words: Mapping[str, tuple[str, ...]], medium: str, name: str, draw: Draw) -> str:
    """Draw a request to open a document, in the words of the suite."""
    filler = Filler(draw, words)
    filler.set("name", name)
    return filler.fill(draw.choice(words[f"open_{medium}"]))


def may_look_alike(kinds: Iterable[str]) -> bool:
    """Tell whether a task about documents of `kinds` can use a look-alike."""
    return not _MAY_LOOK_ALIKE.isdisjoint(kinds)


def _positions_to_try(size: int, draw: Draw) -> Iterator[int]:
    """Yield some random positions, then all positions from a random one on."""
    yield from (draw.below(size) for _ in range(min(size, RANDOM_TRIES)))
    start = draw.below(size) if size else 0
    yield from ((start + offset) % size for offset in range(size))


_KINDS: Final[dict[str, Callable[[DocumentPicker], Iterable[Document]]]] = {
    "page": lambda picker: picker.pages,
    "welcome": DocumentPicker.welcome,
    "howto": DocumentPicker.howto,
    "found": lambda picker: (each for each in picker.pages if _QUOTABLE.fullmatch(each.title)),
    "addressed": DocumentPicker.addressed,
    "mail": lambda picker: picker.mails,
    "answerable": DocumentPicker.answerable,
    "memo": lambda picker: picker.answerable(internal=True),
    "letter": lambda picker: picker.answerable(internal=False),
    "latest": DocumentPicker.latest,
    "listed": DocumentPicker.listed,
    "filed": DocumentPicker.filed,
    "paper": lambda picker: picker.all_files,
    "file": DocumentPicker.own_files,
    "outside": lambda picker: (
        each for each in picker.all_files if each.id in picker.scenario.labels.outside
    ),
    "readme": lambda picker: (each for each in picker.all_files if each.id == "readme.txt"),
    "report": lambda picker: (each for each in picker.own_files() if each.id == "report.txt"),
    "target": lambda picker: (
        each for each in picker.own_files() if each.id not in ("readme.txt", "report.txt")
    ),
    "secretive": DocumentPicker.secretive,
}
_PAGES: Final = frozenset(("page", "welcome", "howto", "found", "addressed"))
_MAILS: Final = frozenset(("mail", "answerable", "memo", "letter", "latest", "listed", "filed"))
_MAY_LOOK_ALIKE: Final = frozenset(("page", "mail", "memo", "letter", "paper", "outside"))
_DESCRIPTIONS: Final = {
    "page": "page",
    "welcome": "page",
    "howto": "page that a search finds",
    "found": "page that a search finds",
    "addressed": "page",
    "mail": "mail",
    "memo": "mail with a sender to answer",
    "letter": "mail with a sender to answer",
    "latest": "mail in the inbox",
    "listed": "mail in the inbox with a sender to answer",
    "filed": "mail at the top of a folder",
    "paper": "file",
    "file": "file",
    "outside": "file",
    "readme": "file",
    "report": "file",
    "target": "file to change or delete",
    "secretive": "file",
}
_FALLBACKS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_DESCRIPTIONS, ()),
    "welcome": ("page",),
    "howto": ("found",),
    "addressed": ("page",),
    "memo": ("answerable",),
    "letter": ("answerable",),
    "outside": ("paper",),
    "readme": ("paper",),
    "report": ("file",),
    "target": ("file",),
    "secretive": ("file",),
}
"""The kinds to use, in this order, if the scenario has no document of a kind."""
