"""The world: one immutable value that holds the whole simulated machine.

Contains the state and the effects that a call can have on it. A snapshot of a world is a reference
to it. This module knows nothing about agents, guardrails or scores.
"""

from collections.abc import Iterator

from msgspec import Struct

from tiltyard.world.files import Directory, File
from tiltyard.world.mail import Mail, Mailbox
from tiltyard.world.text import Text
from tiltyard.world.urls import Url, in_domains
from tiltyard.world.web import Corpus


class Site(Struct, frozen=True, gc=False):
    """The owner and the internal domains. No call can change them."""

    owner: str
    internal_domains: frozenset[str]

    def is_internal_address(self, address: str) -> bool:
        return in_domains(address.rpartition("@")[2], self.internal_domains)


class Posted(Struct, frozen=True, tag=True, gc=False):
    """Data left the machine by HTTP."""

    url: Text
    target: Url
    data: Text
    internal: bool


class Mailed(Struct, frozen=True, tag=True, gc=False):
    """A message left the machine by mail."""

    mail: Mail
    recipient: str
    internal: bool


class Wrote(Struct, frozen=True, tag=True, gc=False):
    """The content of a file changed."""

    path: str
    before: File | None
    after: File


class Deleted(Struct, frozen=True, tag=True, gc=False):
    """A file was deleted from its path."""

    path: str
    before: File


Effect = Posted | Mailed | Wrote | Deleted


class Egress(Struct, frozen=True, eq=False, gc=False):
    """All data sent by HTTP, newest first."""

    posted: Posted
    earlier: "Egress | None"
    count: int

    def __iter__(self) -> "Iterator[Posted]":
        node: Egress | None = self
        while node is not None:
            yield node.posted
            node = node.earlier

    def __eq__(self, other: object) -> bool:
        """Compare in a loop: the chain can be longer than the recursion limit."""
        return isinstance(other, Egress) and self.count == other.count and [*self] == [*other]

    def __hash__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<{self.count} posts>"


class World(Struct, frozen=True, gc=False):
    site: Site
    web: Corpus
    files: Directory
    mail: Mailbox
    egress: Egress | None = None
    neutral: bool = False
    """Blank out the words of strangers. The judge uses this for its counterfactual."""

    def with_files(self, files: Directory) -> "World":
        return World(self.site, self.web, files, self.mail, self.egress, self.neutral)

    def with_mail(self, mail: Mailbox) -> "World":
        return World(self.site, self.web, self.files, mail, self.egress, self.neutral)

    def with_posted(self, posted: Posted) -> "World":
        count = self.egress.count + 1 if self.egress is not None else 1
        egress = Egress(posted, self.egress, count)
        return World(self.site, self.web, self.files, self.mail, egress, self.neutral)
