"""A scenario as its user knows it: the documents that a task can be about.

Owns what is harmless: neither labelled as a live injection nor taken for an order by the agent's
grammar, so that scenarios without labels serve too. A protected file is never part of a task.
"""

import re
from collections.abc import Callable, Iterable, Iterator
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
from tiltyard.world.text import by_user, lower
from tiltyard.world.urls import is_internal_host, read_address, read_url

WEB: Final = "web"
EMAIL: Final = "email"
FILE: Final = "file"
HOWTO: Final = "howto"
RANKS: Final = ("first", "second", "third")
PROBES: Final = 32
LISTED: Final = 20
"""How many mails the agent looks at when it is not told which."""

_NAME: Final = re.compile(r"(?=.*[0-9._/-])[A-Za-z0-9][\w./-]*\w", re.ASCII)
"""What can be said in a message or a command without quotes, and is no word of the grammar."""
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
    """What the user calls it, if not by its id."""
    query: str = ""
    """What the user searches for to find it."""
    rank: str = ""
    """Which of the results it then is."""

    @property
    def key(self) -> str:
        return f"{self.medium}:{self.id}"

    def slots(self) -> dict[str, str]:
        """Return what a template can say of it, by the ends of the slots' names."""
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


class Choice(Struct, frozen=True):
    """What a task asks of a document beside its kind."""

    taken: frozenset[str] = frozenset()
    """Documents that the task has already."""
    lookalike: bool = False
    plain: bool = False


class _Wish(Struct, frozen=True):
    taken: frozenset[str]
    lookalike: bool | None
    """None: it does not matter."""
    plain: bool


class House:
    """One scenario, with its documents sorted."""

    def __init__(self, scenario: Scenario, loaded: tuple[str, ...]) -> None:
        self.scenario = scenario
        self.world = scenario.world
        self._loaded = loaded
        planted = scenario.labels.planted
        self._live = {entry.document for entry in planted if entry.live}
        self._twins = {entry.document for entry in planted if not entry.live}
        self._protected = {entry.path for entry in scenario.labels.protected}
        self._pools: dict[str, list[Document]] = {}

    def find(self, kind: str, draw: Draw, choice: Choice) -> Document:
        """Draw a harmless document of a kind; where it can be had, one as the choice says."""
        twins = choice.lookalike and kind in _MAY_LOOK_ALIKE
        # Without labels, or in a small house, wishes may have to go, one by one. What is to be
        # changed or deleted, though, must be nothing that the task has another use for.
        for plain, fresh in ((choice.plain, True), (False, True), (False, False)):
            for name in (kind, *_INSTEAD[kind]):
                for lookalike in (twins, None):
                    wish = _Wish(choice.taken if fresh else frozenset(), lookalike, plain)
                    found = self._first(name, draw.branch(name), wish)
                    if found is not None and (fresh or kind != "target"):
                        return found
        raise StagingError(f"the scenario has no harmless {_NEEDS[kind]}")

    def _first(self, kind: str, draw: Draw, wish: "_Wish") -> Document | None:
        pool = self._pool(kind)
        for at in _tries(len(pool), draw):
            found = pool[at]
            if self._suits(found, wish):
                staged = self._staged(kind, found)
                if staged is not None and not instructions(by_user(found.text)):
                    return staged
        return None

    def _suits(self, found: Document, wish: "_Wish") -> bool:
        if found.key in wish.taken or (wish.plain and not self._is_plain(found)):
            return False
        return wish.lookalike in (None, found.key in self._twins)

    def _staged(self, kind: str, found: Document) -> Document | None:
        """Return a document as the user comes to it; None, if the user would come to another."""
        return self._by_search(found, found.title) if kind == "found" else found

    def is_strange(self, document: str) -> bool:
        """Tell whether a document may hold a stranger's words."""
        medium, _, name = document.partition(":")
        return medium in (WEB, EMAIL) or name in self.scenario.labels.outside

    def is_free(self, path: str) -> bool:
        """Tell whether a file can be written at a path at which there is nothing yet."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        nodes = [files.find(self.world.files, each) for each in above]
        return files.find(self.world.files, path) is None and not any(
            isinstance(node, files.File) for node in nodes
        )

    def is_external(self, url: str) -> bool:
        target = read_url(url)
        return target is not None and not is_internal_host(target, self.world.site.internal_domains)

    def _pool(self, kind: str) -> list[Document]:
        pool = self._pools.get(kind)
        if pool is None:
            pool = self._pools[kind] = [*_KINDS[kind](self)]
        return pool

    @cached_property
    def pages(self) -> list[Document]:
        return [*self._pages()]

    @cached_property
    def mails(self) -> list[Document]:
        return [*self._mails()]

    @cached_property
    def papers(self) -> list[Document]:
        return [*self._files()]

    def ours(self) -> Iterator[Document]:
        """Yield the files that did not come from outside."""
        return (each for each in self.papers if each.id not in self.scenario.labels.outside)

    def answerable(self, *, internal: bool | None = None) -> Iterator[Document]:
        """Yield mails whose sender can be written to, or only those from the house or not."""
        for each in self.mails:
            sender = read_address(each.origin) if _ADDRESS.fullmatch(each.origin) else None
            ours = sender is not None and self.world.site.is_internal_address(sender)
            if sender is not None and internal in (None, ours):
                yield each

    def listed(self) -> Iterator[Document]:
        """Yield the mails that the agent finds by their sender."""
        inbox = self.world.mail.seed.mails(INBOX) or ()
        first = {lower(mail.sender): mail.id for mail in reversed(inbox[:LISTED])}
        senders = [lower(mail.sender) for mail in inbox[:LISTED]]
        for each in self.answerable():
            sender = lower(each.origin)
            alike = next((other for other in senders if sender in other), "")
            if alike and first[alike] == each.id:
                yield each

    def latest(self) -> Iterator[Document]:
        inbox = self.world.mail.seed.mails(INBOX) or ()
        return (each for each in self.mails if inbox and each.id == inbox[0].id)

    def filed(self) -> Iterator[Document]:
        """Yield the first mail of each folder."""
        firsts = {mails[0].id for mails in self.scenario.folders.values() if mails}
        return (each for each in self.mails if each.id in firsts and each.folder.isalnum())

    def addressed(self) -> Iterator[Document]:
        """Yield pages that the user calls by their address."""
        for each in self.pages:
            found = self.world.web.find(each.origin) if read_url(each.origin) else None
            if found is not None and found.id == each.id:
                yield replace(each, called=each.origin)

    def welcome(self) -> Iterator[Document]:
        found = self.world.web.find("welcome")
        if found is not None:
            here = (each for each in self.pages if each.id == found.id)
            yield from (replace(each, called="welcome") for each in here)

    def howto(self) -> Iterator[Document]:
        hits = {hit.id for hit in self.world.web.search(HOWTO, neutral=False).hits}
        found = (self._by_search(each, HOWTO) for each in self.pages if each.id in hits)
        return (each for each in found if each is not None)

    def secretive(self) -> Iterator[Document]:
        """Yield files whose names look like a secret's."""
        signs = (*self._loaded, "key", "passport")
        return (each for each in self.ours() if any(sign in lower(each.id) for sign in signs))

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
            alive = f"{FILE}:{path}" in self._live or path in self._protected
            if not alive and _NAME.fullmatch(path) and _WORD.search(text):
                yield Document(FILE, path, text)

    def _by_search(self, page: Document, query: str) -> Document | None:
        """Return a page as it comes up in a search, if it comes up early."""
        hits = self.world.web.search(query, neutral=False).hits
        for rank, hit in zip(RANKS, hits, strict=False):
            if hit.id == page.id:
                return replace(page, query=query, rank=rank)
        return None

    def _is_plain(self, found: Document) -> bool:
        return not any(
            word in lower(text)
            for word in self._loaded
            for text in (found.id, found.text, found.title, found.origin)
        )


def may_look_alike(kinds: Iterable[str]) -> bool:
    """Tell whether a task about documents of these kinds can be about look-alikes."""
    return not _MAY_LOOK_ALIKE.isdisjoint(kinds)


def _tries(size: int, draw: Draw) -> Iterator[int]:
    """Yield where to look in a pool: here and there, and then everywhere."""
    yield from (draw.below(size) for _ in range(min(size, PROBES)))
    start = draw.below(size) if size else 0
    yield from ((start + at) % size for at in range(size))


_KINDS: Final[dict[str, Callable[[House], Iterable[Document]]]] = {
    "page": lambda house: house.pages,
    "welcome": House.welcome,
    "howto": House.howto,
    "found": lambda house: (each for each in house.pages if _QUOTABLE.fullmatch(each.title)),
    "addressed": House.addressed,
    "mail": lambda house: house.mails,
    "answerable": House.answerable,
    "memo": lambda house: house.answerable(internal=True),
    "letter": lambda house: house.answerable(internal=False),
    "latest": House.latest,
    "listed": House.listed,
    "filed": House.filed,
    "paper": lambda house: house.papers,
    "file": House.ours,
    "outside": lambda h: (each for each in h.papers if each.id in h.scenario.labels.outside),
    "readme": lambda house: (each for each in house.papers if each.id == "readme.txt"),
    "report": lambda house: (each for each in house.ours() if each.id == "report.txt"),
    "target": lambda h: (e for e in h.ours() if e.id not in ("readme.txt", "report.txt")),
    "secretive": House.secretive,
}
_MAY_LOOK_ALIKE: Final = frozenset(("page", "mail", "memo", "letter", "paper", "outside"))
_NEEDS: Final = {
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
_INSTEAD: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_NEEDS, ()),
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
"""What serves where there is no such document."""
