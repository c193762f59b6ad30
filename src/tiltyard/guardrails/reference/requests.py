"""A small parser of requests: what the user asks for, in imperative sentences.

The parser knows verbs and the positions of their targets. That is enough to tell whether the user
asked for an effect on a target. It reads only the user's messages, so it can be simpler than an
agent: a sentence that it cannot parse asks for nothing.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tiltyard.guardrails.reference.protection import canonical

WRITE: Final = "fs.write"
DELETE: Final = "fs.delete"
MAIL: Final = "email.send"
POST: Final = "http.post"
RUN: Final = "shell.run"

ADDRESS: Final = re.compile(r"[\w.+%'-]+@[\w-]+(?:\.[\w-]+)*")


class Request(NamedTuple):
    """One clause of a user's message that asks for an effect."""

    kinds: tuple[str, ...]
    """The tools that can fulfil the request."""
    words: tuple[str, ...]
    """The words after the verb; quotations without quotation marks."""
    targets: tuple[str, ...]
    """Files to write or delete, or commands to run."""
    literals: tuple[str, ...]
    """Quoted texts to send or to save."""
    to_sender: bool
    """True if the request is a reply to a sender."""
    to_owner: bool
    """True if the request is for the user, or names no recipient."""
    waits: bool
    """True if the request is for a later message."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    stop: int


_TOKEN: Final = re.compile(
    r"""(?P<quoted>"[^"\n]*"|“[^”\n]*”|`[^`\n]*`)"""
    r"""|(?P<mark>[.,:;!?]+(?=\s|$)|\n|["“”`])"""
    r"""|(?P<word>[^\s"“”`]+?(?=[.,:;!?]*(?:\s|$|["“”`])))"""
)
_ENDS: Final = frozenset(".!?;\n")
_VERBS: Final = (
    ((WRITE,), ("write", "save", "store", "copy", "put", "keep", "append", "record", "export")),
    ((WRITE,), ("create", "update", "overwrite", "replace", "log", "note")),
    ((DELETE,), ("delete", "remove", "erase", "discard", "trash")),
    ((MAIL,), ("mail", "email", "forward", "reply", "answer", "respond")),
    ((MAIL, POST), ("send", "share")),
    ((POST,), ("post", "upload", "submit", "publish")),
    ((RUN,), ("run", "execute")),
    ((), ("search", "look", "open", "visit", "list", "check", "read", "show", "find", "fetch")),
    ((), ("encode", "convert", "decode", "reverse", "split", "remember", "follow", "obey")),
    ((), ("summarise", "summarize", "translate", "browse", "tell", "compare", "explain")),
)
"""Verbs that begin a clause, and the tools that they ask for. Reading verbs have no tools."""
_KINDS: Final = {verb: kinds for kinds, verbs in _VERBS for verb in verbs}
_REPLIES: Final = frozenset(("reply", "answer", "respond"))
_JOINTS: Final = frozenset((",", "and", "then", ":", "-"))
_LEAD_INS: Final = frozenset(
    (
        *("please", "kindly", "now", "also", "then", "first", "second", "third", "next"),
        *("finally", "and", "urgent", "important", "immediately", "just", ",", ":", "-", "*", "•"),
    )
)
_COURTESIES: Final = tuple(
    tuple(phrase.split())
    for phrase in (
        "could you",
        "can you",
        "would you",
        "will you",
        "i want you to",
        "i need you to",
        "i would like you to",
        "i'd like you to",
        "you must",
        "you need to",
        "you are to",
        "make sure to",
        "be sure to",
    )
)
_LIST_MARK: Final = re.compile(r"\(?\d{1,3}[.)]?")
_WAITS: Final = frozenset(("when", "whenever", "after", "once"))
_OCCASIONS: Final = frozenset(("mail", "email", "message", "page", "file", "command"))
_ENOUGH: Final = frozenset(("not", "never", "don't", "except", "without", "but", "unless"))
"""After these words, a clause names exceptions."""
_INTO: Final = frozenset(("to", "in", "into", "as", "onto", "over", "under", "called", "named"))
_FILLERS: Final = frozenset(("the", "my", "your", "our", "a", "an", "file", "command", "new"))
_RESPELLS: Final = frozenset(
    (
        *("base64", "hex", "url", "rot13", "reverse", "reversed", "spaced"),
        *("encode", "encoded", "convert", "decode", "split", "parts", "pieces"),
    )
)
"""Words that say that the output differs from what the user wrote."""


@lru_cache(maxsize=2048)
def requests(message: str) -> tuple[Request, ...]:
    """Return the requests of a message. Quoted lines and statements are not requests."""
    return tuple(
        request for sentence in _sentences(message) for request in _read(sentence, message)
    )


@lru_cache(maxsize=512)
def quoted_requests(message: str) -> tuple[Request, ...]:
    """Return the requests inside the quotations of a message."""
    quotations = (t.text for s in _sentences(message) for t in s if t.kind == "quoted")
    return tuple(request for text in quotations for request in requests(text))


def asks_to_follow(message: str) -> bool:
    """Tell whether a message asks to follow a text."""
    return any(
        _word(sentence[at]) in ("follow", "obey")
        for sentence in _sentences(message)
        if (at := _skip_lead_ins(sentence, 0)) < len(sentence)
    )


def _sentences(message: str) -> Iterator[list[_Token]]:
    offset = 0
    for line in message.splitlines(keepends=True):
        sentence: list[_Token] = []
        if not line.lstrip().startswith(">"):
            for found in _TOKEN.finditer(line):
                kind, text = found.lastgroup or "", found.group()
                if kind == "mark" and not _ENDS.isdisjoint(text):
                    yield sentence
                    sentence = []
                else:
                    text = text[1:-1] if kind == "quoted" else text
                    start, stop = found.span()
                    sentence.append(_Token(kind, text, offset + start, offset + stop))
        yield sentence
        offset += len(line)


def _read(sentence: list[_Token], message: str) -> Iterator[Request]:
    """Yield the requests of one sentence, if it begins with a verb."""
    at = _skip_lead_ins(sentence, 0)
    waits = at < len(sentence) and _word(sentence[at]) in _WAITS
    if waits:
        occasion = (n for n, token in enumerate(sentence) if _word(token) in _OCCASIONS)
        at = _skip_lead_ins(sentence, next(occasion, len(sentence)) + 1)
    while at < len(sentence) and _word(sentence[at]) in _KINDS:
        following = _next_clause(sentence, at + 1)
        if _KINDS[_word(sentence[at])]:
            yield _clause(sentence, at, following, message, waits=waits)
        at = _skip_lead_ins(sentence, following)


def _word(token: _Token) -> str:
    return "" if token.kind == "quoted" else token.text.lower()


def _skip_lead_ins(sentence: list[_Token], at: int) -> int:
    while at < len(sentence):
        word = _word(sentence[at])
        if word in _LEAD_INS or _LIST_MARK.fullmatch(word):
            at += 1
            continue
        coming = tuple(_word(token) for token in sentence[at : at + 5])
        polite = (len(phrase) for phrase in _COURTESIES if coming[: len(phrase)] == phrase)
        skipped = next(polite, 0)
        if not skipped:
            break
        at += skipped
    return at


def _next_clause(sentence: list[_Token], at: int) -> int:
    """Return the start of the next clause: a separator followed by a verb."""
    for place in range(at, len(sentence)):
        if _word(sentence[place]) in _JOINTS:
            start = _skip_lead_ins(sentence, place)
            if start < len(sentence) and _word(sentence[start]) in _KINDS:
                return place
    return len(sentence)


def _clause(sentence: list[_Token], at: int, stop: int, message: str, *, waits: bool) -> Request:
    verb = _word(sentence[at])
    kinds = _KINDS[verb]
    tokens = [token for token in sentence[at + 1 : stop] if token.kind != "mark"]
    meant = (n for n, token in enumerate(tokens) if _word(token) in _ENOUGH)
    tokens = tokens[: next(meant, len(tokens))]
    words = tuple(token.text for token in tokens)
    spoken = {_word(token) for token in tokens}
    targets: tuple[str, ...] = ()
    if kinds == (WRITE,):
        targets = _written(tokens)
    elif kinds == (DELETE,):
        targets = words
    elif kinds == (RUN,):
        targets = tuple(_commands(sentence, at, stop, message))
    respelt = not _RESPELLS.isdisjoint(message.lower().split())
    to_sender = verb in _REPLIES or "sender" in spoken
    named = any(ADDRESS.fullmatch(word) for word in words)
    return Request(
        kinds,
        words,
        targets,
        () if respelt else _literals(tokens, targets),
        to_sender,
        not spoken.isdisjoint(("me", "myself")) or not (named or to_sender),
        waits,
    )


def _written(tokens: list[_Token]) -> tuple[str, ...]:
    """Return the names after `to`, `in` or `as`; if there are none, the first name."""
    behind = [n + 1 for n, token in enumerate(tokens) if _word(token) in _INTO]
    names = [name for place in behind or [0] for name in _name_at(tokens, place)]
    return tuple(names)


def _name_at(tokens: list[_Token], at: int) -> tuple[str, ...]:
    while at < len(tokens) and _word(tokens[at]) in _FILLERS:
        at += 1
    return (tokens[at].text,) if at < len(tokens) else ()


def _commands(sentence: list[_Token], at: int, stop: int, message: str) -> Iterator[str]:
    """Yield the commands that a clause may mean: a quotation, or its words."""
    start = at + 1
    while start < len(sentence) and _word(sentence[start]) in _FILLERS:
        start += 1
    if start == len(sentence):
        return
    if sentence[start].kind == "quoted":
        yield sentence[start].text
        return
    for last in {stop, len(sentence)}:
        if last > start:
            yield message[sentence[start].start : sentence[last - 1].stop]


def _literals(tokens: list[_Token], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the quotations that are neither a target nor a subject."""
    return tuple(
        token.text
        for n, token in enumerate(tokens)
        if token.kind == "quoted"
        and token.text not in targets
        and (n == 0 or _word(tokens[n - 1]) != "subject")
    )


def names_path(request: Request, path: str) -> bool:
    """Tell whether a request names this file."""
    return any(_means(target, path) for target in request.targets)


def mentions_path(messages: list[str], path: str) -> bool:
    """Tell whether any message mentions this file."""
    return any(
        _means(token.text, path)
        for message in messages
        for sentence in _sentences(message)
        for token in sentence
    )


def _means(name: str, path: str) -> bool:
    """Tell whether `name` means `path`: without its ending, or as a parent folder."""
    named, wanted = canonical(name), canonical(path)
    stem = wanted[: wanted.rindex(".")] if "." in wanted.rpartition("/")[2][1:] else wanted
    if named == wanted or (named == stem and "." not in named):
        return True
    return name.endswith("/") and wanted.startswith(f"{named}/")


def names_url(request: Request, url: str) -> bool:
    return any(_same_url(word, url) for word in request.words if "://" in word)


def names_some_url(request: Request) -> bool:
    return any("://" in word for word in request.words)


def _same_url(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        a, b = urlsplit(one), urlsplit(other)
        same_place = (a.scheme, a.hostname, a.port, a.username) == (
            b.scheme,
            b.hostname,
            b.port,
            b.username,
        )
    except ValueError:
        return False
    return same_place and (a.path or "/", a.query) == (b.path or "/", b.query)


def addresses(text: str) -> tuple[str, ...]:
    """Return the mail addresses in a text, in lower case."""
    return tuple(found.lower() for found in ADDRESS.findall(text))
