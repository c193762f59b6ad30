"""The mailbox as a value.

A folder is the scenario's own messages, shared by every world, and what was delivered since on
top of them. Mail to the owner arrives in the inbox with its authors' labels on it, so nobody
can launder words by posting them to themselves.
"""

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
    """A message that the scenario brings."""

    id: str
    sender: str
    subject: str
    body: str


class Mail(Struct, frozen=True, gc=False):
    """A message sent during the episode, its words still labelled."""

    id: str
    sender: str
    to: Text
    subject: Text
    body: Text


class Delivered(Struct, frozen=True):
    """Mail of one folder that came during the episode, newest first."""

    mail: Mail
    earlier: "Delivered | None"
    count: int


class SeedMailbox:
    """The scenario's messages: indexed once, shared, rendered at most once each."""

    def __init__(self, folders: dict[str, tuple[SeedMail, ...]]) -> None:
        self.folders = folders
        self._by_id = {mail.id: mail for mails in folders.values() for mail in mails}
        self._rendered: dict[tuple[str, bool], Text] = {}
        self.page = lru_cache(maxsize=REMEMBERED_PAGES)(self._page)

    def _page(self, folder: str, start: int, limit: int) -> "Page | None":
        mails = self.folders.get(folder)
        if mails is None and folder not in (INBOX, SENT):
            return None
        mails = mails or ()
        hits = [Hit(mail.id, mail.subject, mail.sender) for mail in mails[start : start + limit]]
        return _page(hits, start, len(mails))

    def find(self, mail_id: str) -> SeedMail | None:
        return self._by_id.get(mail_id)

    def render(self, mail: SeedMail, *, neutral: bool) -> Text:
        key = mail.id, neutral
        text = self._rendered.get(key)
        if text is None:
            header = Origin(SourceKind.EMAIL, mail.id, Part.HEADER, trusted=False)
            body = Origin(SourceKind.EMAIL, mail.id, Part.BODY, trusted=False)
            text = _letter(
                written_by(header, _one_line(mail.sender)),
                written_by(header, _one_line(mail.subject)),
                written_by(body, mail.body),
            )
            text = self._rendered[key] = neutralise(text) if neutral else text
        return text


class Page(Struct, frozen=True, gc=False):
    """Part of a folder's listing."""

    hits: tuple[Hit, ...]
    listing: Text
    size: int
    """How many messages the whole folder has."""


class Mailbox(Struct, frozen=True, gc=False):
    """Every folder, as of now."""

    seed: SeedMailbox
    delivered: Map[str, Delivered]
    by_id: Map[str, Mail]
    sent_count: int


def open_mailbox(seed: SeedMailbox) -> Mailbox:
    return Mailbox(seed, Map(), Map(), 0)


def read(mailbox: Mailbox, mail_id: str, *, neutral: bool) -> tuple[Text, str] | None:
    """Return a message as its reader sees it, and its sender."""
    seeded = mailbox.seed.find(mail_id)
    if seeded is not None:
        return mailbox.seed.render(seeded, neutral=neutral), seeded.sender
    mail = mailbox.by_id.get(mail_id)
    if mail is None:
        return None
    letter = _letter(by_machine(mail.sender), mail.subject, mail.body)
    return neutralise(letter) if neutral else letter, mail.sender


def page(mailbox: Mailbox, folder: str, start: int, limit: int) -> Page | None:
    """Return some headers of a folder, newest first."""
    newer = mailbox.delivered.get(folder)
    if newer is None:
        return mailbox.seed.page(folder, start, limit)
    recent = newer.count
    hits: list[Hit] = []
    position = 0
    older: Delivered | None = newer
    while older is not None and position < start + limit:
        if position >= start:
            mail = older.mail
            hits.append(Hit(mail.id, mail.subject.string, mail.sender))
        older = older.earlier
        position += 1
    seeded = mailbox.seed.folders.get(folder, ())
    first, last = max(0, start - recent), max(0, start + limit - recent)
    hits += (Hit(mail.id, mail.subject, mail.sender) for mail in seeded[first:last])
    return _page(hits, start, recent + len(seeded))


def deliver(mailbox: Mailbox, mail: Mail, *, to_owner: bool) -> Mailbox:
    """Return the mailbox after a message went out, and came back if it was to the owner."""
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


def _page(hits: list[Hit], start: int, size: int) -> Page:
    lines: list[Text] = []
    for hit in hits:
        header = Origin(SourceKind.EMAIL, hit.id, Part.HEADER, trusted=False)
        lines += (
            by_machine(f"[{hit.id}] "),
            written_by(header, f"{hit.sender} | {hit.title}"),
            by_machine("\n"),
        )
    end = start + len(hits)
    lines.append(by_machine(f"next cursor: {end}\n" if end < size else "end of folder\n"))
    return Page(tuple(hits), join(lines), size)


def _one_line(header: str) -> str:
    """Keep a header to its line: what a scenario smuggles behind it is no body."""
    return header.replace("\n", " ").replace("\r", " ")


def _letter(sender: Text, subject: Text, body: Text) -> Text:
    return join(
        (by_machine("From: "), sender, by_machine("\nSubject: "), subject, by_machine("\n\n"), body)
    )
