"""The mailbox as an immutable value.

A folder consists of the messages of the scenario, which all worlds share, and the messages
delivered since. Mail to the owner arrives in the inbox with the labels of its authors, so sending a
text to oneself does not hide who wrote it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from immutables import Map
from msgspec import Struct

from tiltyard.world.text import (
    Origin,
    Part,
    SourceKind,
    Text,
    by_machine,
    join,
    neutralise,
    written_by,
)
from tiltyard.world.web import Hit

INBOX: Final = "inbox"
SENT: Final = "sent"
REMEMBERED_PAGES: Final = 1024


class SeedMail(Struct, frozen=True, gc=False):
    """A message of the scenario."""

    id: str
    sender: str
    subject: str
    body: str


class Mail(Struct, frozen=True, gc=False):
    """A message sent during the episode, with labelled text."""

    id: str
    sender: str
    to: Text
    subject: Text
    body: Text


Letter = tuple[Text, Text, str]
"""A message as its reader sees it, its body alone, and its sender."""


class Delivered(Struct, frozen=True, eq=False, gc=False):
    """The mail delivered to one folder during the episode, newest first."""

    mail: Mail
    earlier: "Delivered | None"
    count: int

    def __iter__(self) -> "Iterator[Mail]":
        node: Delivered | None = self
        while node is not None:
            yield node.mail
            node = node.earlier

    def __eq__(self, other: object) -> bool:
        """Compare in a loop: the chain can be longer than the recursion limit."""
        return isinstance(other, Delivered) and self.count == other.count and [*self] == [*other]

    def __hash__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<{self.count} mails>"


class SeedMailbox:
    """The messages of the scenario, shared by all worlds and rendered at most once each."""

    def __init__(self, folders: dict[str, tuple[SeedMail, ...]]) -> None:
        self.folders = folders
        self._names = {name.casefold(): name for name in sorted(folders, reverse=True)}
        self._by_id = {mail.id: mail for mails in folders.values() for mail in mails}
        self._rendered: dict[tuple[str, bool], Letter] = {}
        self.page = lru_cache(maxsize=REMEMBERED_PAGES)(self._page)

    def _page(self, folder: str, start: int, limit: int) -> "ListingPage | None":
        mails = self.mails(folder)
        if mails is None:
            return None
        return _page(
            [_seeded_line(mail) for mail in mails[start : start + limit]], start, len(mails)
        )

    def mails(self, folder: str) -> tuple[SeedMail, ...] | None:
        """Return the messages of a folder. The folders inbox and sent always exist."""
        empty = () if folder in (INBOX, SENT) else None
        return self.folders.get(self._names.get(folder, folder), empty)

    def find(self, mail_id: str) -> SeedMail | None:
        return self._by_id.get(mail_id)

    def render(self, mail: SeedMail, *, neutral: bool) -> "Letter":
        key = mail.id, neutral
        letter = self._rendered.get(key)
        if letter is None:
            header = Origin(SourceKind.EMAIL, mail.id, Part.HEADER, trusted=False)
            body = Origin(SourceKind.EMAIL, mail.id, Part.BODY, trusted=False)
            letter = self._rendered[key] = _letter(
                written_by(header, _one_line(mail.sender)),
                written_by(header, _one_line(mail.subject)),
                written_by(body, mail.body),
                neutral=neutral,
            )
        return letter


class ListingPage(Struct, frozen=True, gc=False):
    """Part of a folder's listing."""

    hits: tuple[Hit, ...]
    listing: Text
    size: int
    """Number of messages in the whole folder."""


class Mailbox(Struct, frozen=True, gc=False):
    """All folders at one moment of an episode."""

    seed: SeedMailbox
    delivered: Map[str, Delivered]
    by_id: Map[str, Mail]
    sent_count: int


def open_mailbox(seed: SeedMailbox) -> Mailbox:
    return Mailbox(seed, Map(), Map(), 0)


def read(mailbox: Mailbox, mail_id: str, *, neutral: bool) -> Letter | None:
    """Return a message as its reader sees it."""
    seeded = mailbox.seed.find(mail_id)
    if seeded is not None:
        return mailbox.seed.render(seeded, neutral=neutral)
    mail = mailbox.by_id.get(mail_id)
    if mail is None:
        return None
    return _letter(by_machine(mail.sender), mail.subject, mail.body, neutral=neutral)


def page(mailbox: Mailbox, folder: str, start: int, limit: int) -> ListingPage | None:
    """Return up to `limit` headers of a folder from `start` on, newest first."""
    newer = mailbox.delivered.get(folder)
    if newer is None:
        return mailbox.seed.page(folder, start, limit)
    recent = newer.count
    lines: list[_Line] = []
    position = 0
    older: Delivered | None = newer
    while older is not None and position < start + limit:
        if position >= start:
            mail = older.mail
            lines.append((mail.id, by_machine(mail.sender), mail.subject))
        older = older.earlier
        position += 1
    seeded = mailbox.seed.mails(folder) or ()
    first, last = max(0, start - recent), max(0, start + limit - recent)
    lines += map(_seeded_line, seeded[first:last])
    return _page(lines, start, recent + len(seeded))


def deliver(mailbox: Mailbox, mail: Mail, *, to_owner: bool) -> Mailbox:
    """Return the mailbox with `mail` in sent and, if `to_owner`, in the inbox."""
    delivered = _put(mailbox.delivered, SENT, mail)
    if to_owner:
        delivered = _put(delivered, INBOX, mail)
    return Mailbox(
        mailbox.seed, delivered, mailbox.by_id.set(mail.id, mail), mailbox.sent_count + 1
    )


def _put(folders: Map[str, Delivered], folder: str, mail: Mail) -> Map[str, Delivered]:
    earlier = folders.get(folder)
    count = earlier.count + 1 if earlier is not None else 1
    return folders.set(folder, Delivered(mail, earlier, count))


_Line = tuple[str, Text, Text]
"""The id, sender and subject of a message in a listing."""


def _seeded_line(mail: SeedMail) -> _Line:
    header = Origin(SourceKind.EMAIL, mail.id, Part.HEADER, trusted=False)
    return mail.id, written_by(header, mail.sender), written_by(header, mail.subject)


def _page(lines: list[_Line], start: int, size: int) -> ListingPage:
    texts: list[Text] = []
    for mail_id, sender, subject in lines:
        texts += (by_machine(f"[{mail_id}] "), sender, by_machine(" | "), subject, by_machine("\n"))
    end = start + len(lines)
    texts.append(by_machine(f"next cursor: {end}\n" if end < size else "end of folder\n"))
    hits = tuple(Hit(mail_id, subject.string, sender.string) for mail_id, sender, subject in lines)
    return ListingPage(hits, join(texts), size)


def _one_line(header: str) -> str:
    """Return `header` on one line, so that text after a line end cannot pass as a body."""
    return header.replace("\n", " ").replace("\r", " ")


def _letter(sender: Text, subject: Text, body: Text, *, neutral: bool) -> Letter:
    body = neutralise(body) if neutral else body
    whole = join(
        (by_machine("From: "), sender, by_machine("\nSubject: "), subject, by_machine("\n\n"), body)
    )
    return (neutralise(whole) if neutral else whole), body, sender.string
