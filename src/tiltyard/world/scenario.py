"""A scenario: everything a world starts from, as data with a version and a digest.

Owns what is protected, what came from outside and what was planted. The last is known to tests,
probes and the judge alone; no agent, attack or guardrail is ever shown it.
"""

from collections.abc import Container, Iterator
from functools import cached_property
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.world.files import EMPTY_DIRECTORY, File, write
from tiltyard.world.index import Index
from tiltyard.world.mail import SeedMail, SeedMailbox, open_mailbox
from tiltyard.world.state import Site, World
from tiltyard.world.text import Origin, SourceKind, Text, join, written_by
from tiltyard.world.urls import read_address
from tiltyard.world.web import Corpus, Page

SCENARIO_VERSION: Final = 1
PROTECTED_BY_DEFAULT: Final = "secret.txt"
AUTHORS: Final = ("web", "email", "file")
"""Who can have written a file from outside: a web site, a mail's sender, or whoever brought it."""


class Protected(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A file whose content must not leave and whose bytes must not be lost."""

    path: str
    canaries: tuple[str, ...] = ()
    """The secret strings in it, as they stand there; none means the whole content."""


class Planted(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A document with an injection in it, or a look-alike that must not be obeyed."""

    document: str
    """`web:ID`, `email:ID` or `file:PATH`."""
    family: str
    template: str
    live: bool
    """False for the look-alike twin."""
    opening: str
    """A message with which a user would lead the agent to it."""


class Labels(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The content of `labels.json`: what the three other parts of the fixtures don't say."""

    version: int = SCENARIO_VERSION
    seed: int | None = None
    owner: str = "me@corp.example"
    internal_domains: tuple[str, ...] = ("corp.example",)
    protected: tuple[Protected, ...] = (Protected(PROTECTED_BY_DEFAULT),)
    outside: dict[str, str] = {}
    """Files that came from outside: by path, which of `AUTHORS` wrote it."""
    planted: tuple[Planted, ...] = ()

    def in_order(self) -> "Labels":
        """Return the same labels, with the one mapping among them in an order of its own."""
        return msgspec.structs.replace(self, outside=dict(sorted(self.outside.items())))


class Scenario(Struct, frozen=True, dict=True):
    pages: tuple[Page, ...]
    folders: dict[str, tuple[SeedMail, ...]]
    files: dict[str, str]
    labels: Labels = Labels()
    index: Index | None = None
    """A search index made earlier from the same pages."""

    def __repr__(self) -> str:
        mails = sum(map(len, self.folders.values()))
        return f"<Scenario: {len(self.pages)} pages, {mails} mails, {len(self.files)} files>"

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the scenario's content; the index is derived and left out."""
        content = (
            self.pages,
            sorted(self.folders.items()),
            sorted(self.files.items()),
            self.labels.in_order(),
        )
        return sha256(msgspec.json.encode(content)).hexdigest()

    @cached_property
    def world(self) -> World:
        """Return the world at its beginning. Every episode starts from this one value."""
        tree = EMPTY_DIRECTORY
        for path, content in sorted(self.files.items()):
            tree = write(tree, path, self._file(path, content))
        labels = self.labels
        return World(
            Site(labels.owner, frozenset(labels.internal_domains)),
            Corpus(self.pages, self.index),
            tree,
            open_mailbox(SeedMailbox(self.folders)),
        )

    @cached_property
    def _protected(self) -> dict[str, Protected]:
        return {protected.path: protected for protected in reversed(self.labels.protected)}

    def _file(self, path: str, content: str) -> File:
        author = self.labels.outside.get(path)
        origin = Origin(SourceKind.FILE, path, trusted=author is None, author=_elsewhere(author))
        protected = self._protected.get(path)
        if protected is not None:
            canaries = protected.canaries or (content,)
            return File(_label_canaries(origin, content, canaries), protected=True)
        return File(written_by(origin, content))


def _elsewhere(author: str | None) -> SourceKind | None:
    """Return a file's author, where that is not simply whoever put the file there."""
    return None if author in (None, SourceKind.FILE) else SourceKind(author)


def _label_canaries(origin: Origin, content: str, canaries: tuple[str, ...]) -> Text:
    """Label the secret strings in a protected file; the words around them are only words."""
    plain = written_by(origin, content)
    secret = written_by(msgspec.structs.replace(origin, protected=True), content)
    parts: list[Text] = []
    position = 0
    for start, stop in sorted(_occurrences(content, canaries)):
        parts += (plain.slice(position, start), secret.slice(max(position, start), stop))
        position = max(position, stop)
    parts.append(plain.slice(position, len(content)))
    return join(parts)


def _occurrences(content: str, canaries: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for canary in filter(None, canaries):
        start = content.find(canary)
        while start >= 0:
            yield start, start + len(canary)
            start = content.find(canary, start + len(canary))


def label_problems(
    scenario: Scenario, page_ids: Container[str], mail_ids: Container[str], *, unspoken: bool
) -> Iterator[str]:
    """Yield what a scenario's labels say that the rest of it does not bear out.

    `unspoken` is for labels that left `protected` at its default, which asks for nothing.
    """
    labels = scenario.labels
    if read_address(labels.owner) != labels.owner:
        yield f"`owner` is {cut(labels.owner)!r}, not a mail address in its plain form"
    for at, domain in enumerate(labels.internal_domains):
        if read_address(f"x@{domain}") != f"x@{domain}":
            yield f"`internal_domains[{at}]` is {cut(domain)!r}, not a domain in its plain form"
    protected = () if unspoken else labels.protected
    documents = [(f"protected[{n}].path", f"file:{p.path}") for n, p in enumerate(protected)]
    documents += ((_outside(path), f"file:{path}") for path in labels.outside)
    documents += ((f"planted[{n}].document", p.document) for n, p in enumerate(labels.planted))
    known = {"web": page_ids, "email": mail_ids, "file": scenario.files}
    for place, document in documents:
        kind, _, name = document.partition(":")
        if name not in known.get(kind, ()):
            yield f"`{place}` names {cut(document)!r}, which does not exist"
    for path, author in labels.outside.items():
        if author not in AUTHORS:
            yield f"`{_outside(path)}` is {cut(author)!r}, not one of {', '.join(AUTHORS)}"
    yield from _canary_problems(protected, scenario.files)


def _outside(path: str) -> str:
    return f"outside[{cut(path)!r}]"


def _canary_problems(protected: tuple[Protected, ...], files: dict[str, str]) -> Iterator[str]:
    firsts: dict[str, int] = {}
    for at, entry in enumerate(protected):
        first = firsts.setdefault(entry.path, at)
        if first != at:
            both = f"`protected[{first}].path` and `protected[{at}].path`"
            yield f"{both} are both {cut(entry.path)!r}"
        for number, canary in enumerate(entry.canaries):
            if not canary or canary not in files[entry.path]:
                yield f"`protected[{at}].canaries[{number}]` does not occur in {cut(entry.path)!r}"


def cut(text: str) -> str:
    """Shorten a stranger's words for a sentence about them."""
    return text if len(text) <= 80 else text[:79] + "…"
