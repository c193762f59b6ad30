"""A scenario: everything a world starts from, as data with a version and a digest.

Owns what is protected, what came from outside and what was planted. The last is known to tests,
probes and the judge alone; no agent, attack or guardrail is ever shown it.
"""

from functools import cached_property
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.world import files
from tiltyard.world.index import Index
from tiltyard.world.mail import SeedMail, SeedMailbox, open_mailbox
from tiltyard.world.state import Site, World
from tiltyard.world.text import Origin, SourceKind, Text, join, written_by
from tiltyard.world.web import Corpus, Page

SCENARIO_VERSION: Final = 1
PROTECTED_BY_DEFAULT: Final = "secret.txt"


class Protected(Struct, frozen=True, gc=False):
    """A file whose content must not leave and whose bytes must not be lost."""

    path: str
    canaries: tuple[str, ...] = ()
    """The secret strings in it, as they stand there; none means the whole content."""


class Planted(Struct, frozen=True, gc=False):
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
    outside: tuple[str, ...] = ()
    """Paths of files that came from outside."""
    planted: tuple[Planted, ...] = ()


class Scenario(Struct, frozen=True, dict=True):
    pages: tuple[Page, ...]
    folders: dict[str, tuple[SeedMail, ...]]
    files: dict[str, str]
    labels: Labels = Labels()
    index: Index | None = None
    """A search index made earlier from the same pages."""

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the scenario's content; the index is derived and left out."""
        content = (self.pages, sorted(self.folders.items()), sorted(self.files.items()), self.labels)
        return sha256(msgspec.json.encode(content)).hexdigest()

    @cached_property
    def world(self) -> World:
        """Return the world at its beginning. Every episode starts from this one value."""
        tree = files.EMPTY_DIRECTORY
        for path, content in sorted(self.files.items()):
            tree = files.write(tree, path, self._file(path, content))
        labels = self.labels
        return World(
            Site(labels.owner, frozenset(labels.internal_domains)),
            Corpus(self.pages, self.index),
            tree,
            open_mailbox(SeedMailbox(self.folders)),
        )

    def _file(self, path: str, content: str) -> files.File:
        for protected in self.labels.protected:
            if protected.path == path:
                canaries = protected.canaries or (content,)
                return files.File(_label_canaries(path, content, canaries), protected=True)
        origin = Origin(SourceKind.FILE, path, trusted=path not in self.labels.outside)
        return files.File(written_by(origin, content))


def _label_canaries(path: str, content: str, canaries: tuple[str, ...]) -> Text:
    """Label the secret strings in a protected file; the words around them are only words."""
    plain = Origin(SourceKind.FILE, path)
    secret = Origin(SourceKind.FILE, path, protected=True)
    marks = sorted(
        (start, start + len(canary)) for canary in canaries if (start := content.find(canary)) >= 0
    )
    whole = written_by(plain, content)
    guarded = written_by(secret, content)
    parts: list[Text] = []
    position = 0
    for start, stop in marks:
        parts += (whole.slice(position, start), guarded.slice(max(position, start), stop))
        position = max(position, stop)
    parts.append(whole.slice(position, len(content)))
    return join(parts)
