"""A scenario: everything a world starts from, as data with a version and a digest.

The labels of a scenario say which files are protected, which came from outside, and which documents
are planted. Only tests, probes and the judge see the labels; no agent, attack or guardrail does.
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
"""Authors of files from outside: a web site, the sender of a mail, or the person who left it."""


class Protected(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A file whose content must not leave the machine and must not be lost."""

    path: str
    canaries: tuple[str, ...] = ()
    """The secret strings in the file. If there are none, the whole content is secret."""


class Planted(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A document with an injection, or a look-alike that contains no instruction."""

    document: str
    """`web:ID`, `email:ID` or `file:PATH`."""
    family: str
    template: str
    live: bool
    """False for a look-alike."""
    opening: str
    """A message of the user that leads the agent to the document."""
    payload: str = ""
    """The exact text of the injection or look-alike in the document, without the words around it.
    Empty if the labels do not record it."""


class Labels(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The content of `labels.json`."""

    version: int = SCENARIO_VERSION
    seed: int | None = None
    owner: str = "me@corp.example"
    internal_domains: tuple[str, ...] = ("corp.example",)
    protected: tuple[Protected, ...] = (Protected(PROTECTED_BY_DEFAULT),)
    outside: dict[str, str] = {}
    """Files from outside: path to author, one of `AUTHORS`."""
    planted: tuple[Planted, ...] = ()

    def in_order(self) -> "Labels":
        """Return the same labels with `outside` sorted."""
        return msgspec.structs.replace(self, outside=dict(sorted(self.outside.items())))


class Scenario(Struct, frozen=True, dict=True):
    pages: tuple[Page, ...]
    folders: dict[str, tuple[SeedMail, ...]]
    files: dict[str, str]
    labels: Labels = Labels()
    index: Index | None = None
    added: dict[str, tuple[str, ...]] = {}
    """Harmless lines that a match added to documents, by document. The digest has them as text."""
    """The search index of these pages, if it exists already."""

    def __repr__(self) -> str:
        mails = sum(map(len, self.folders.values()))
        return f"<Scenario: {len(self.pages)} pages, {mails} mails, {len(self.files)} files>"

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the content. The index is derived from it and not included."""
        content = (
            self.pages,
            sorted(self.folders.items()),
            sorted(self.files.items()),
            self.labels.in_order(),
        )
        return sha256(msgspec.json.encode(content)).hexdigest()

    @cached_property
    def world(self) -> World:
        """Return the initial world, from which every episode starts."""
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
        origin = Origin(SourceKind.FILE, path, trusted=author is None, author=_author_kind(author))
        protected = self._protected.get(path)
        if protected is not None:
            canaries = protected.canaries or (content,)
            return File(_label_canaries(origin, content, canaries), protected=True)
        return File(written_by(origin, content))


def _author_kind(author: str | None) -> SourceKind | None:
    """Return the author of a file, if it is a web site or the sender of a mail."""
    return None if author in (None, SourceKind.FILE) else SourceKind(author)


def _label_canaries(origin: Origin, content: str, canaries: tuple[str, ...]) -> Text:
    """Label the secret strings in a protected file; the words around them are not secret."""
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
    scenario: Scenario,
    page_ids: Container[str],
    mail_ids: Container[str],
    *,
    default_protected: bool,
) -> Iterator[str]:
    """Yield each contradiction between the labels of a scenario and its documents.

    With `default_protected`, the protected files are the default and need not exist.
    """
    labels = scenario.labels
    if read_address(labels.owner) != labels.owner:
        yield f"`owner` is {short(labels.owner)!r}; expected an address like me@corp.example"
    for at, domain in enumerate(labels.internal_domains):
        if read_address(f"x@{domain}") != f"x@{domain}":
            yield (
                f"`internal_domains[{at}]` is {short(domain)!r}; "
                "expected a domain like corp.example"
            )
    protected = () if default_protected else labels.protected
    documents = [(f"protected[{n}].path", f"file:{p.path}") for n, p in enumerate(protected)]
    documents += ((_outside(path), f"file:{path}") for path in labels.outside)
    documents += ((f"planted[{n}].document", p.document) for n, p in enumerate(labels.planted))
    known = {"web": page_ids, "email": mail_ids, "file": scenario.files}
    for place, document in documents:
        kind, _, name = document.partition(":")
        if name not in known.get(kind, ()):
            yield f"`{place}` names {short(document)!r}, which does not exist"
    for path, author in labels.outside.items():
        if author not in AUTHORS:
            yield f"`{_outside(path)}` is {short(author)!r}; expected one of {', '.join(AUTHORS)}"
    yield from _canary_problems(protected, scenario.files)


def _outside(path: str) -> str:
    return f"outside[{short(path)!r}]"


def _canary_problems(protected: tuple[Protected, ...], files: dict[str, str]) -> Iterator[str]:
    firsts: dict[str, int] = {}
    for at, entry in enumerate(protected):
        first = firsts.setdefault(entry.path, at)
        if first != at:
            both = f"`protected[{first}].path` and `protected[{at}].path`"
            yield f"{both} are both {short(entry.path)!r}"
        for number, canary in enumerate(entry.canaries):
            if not canary or canary not in files[entry.path]:
                place = f"`protected[{at}].canaries[{number}]`"
                yield f"{place} does not occur in {short(entry.path)!r}"


def short(text: str) -> str:
    """Shorten a text for an error message."""
    return text if len(text) <= 80 else text[:79] + "…"
