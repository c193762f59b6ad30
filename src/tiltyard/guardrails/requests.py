"""A small parser of requests: what the user asks for, in imperative sentences.

The parser knows verbs and the positions of their targets. That is enough to tell whether the user
asked for an effect on a target. It reads only the user's messages, so it can be simpler than an
agent: a sentence that it cannot parse asks for nothing. What the user only quotes, to save or to
send it, is no request.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from tiltyard.contracts.guardrail import Context
from tiltyard.guardrails.targets import ADDRESS, means_path, same_url

WRITE: Final = "fs.write"
DELETE: Final = "fs.delete"
MAIL: Final = "email.send"
POST: Final = "http.post"
RUN: Final = "shell.run"


class Request(NamedTuple):
    """One clause of a user's message that asks for an effect."""

    kinds: tuple[str, ...]
    """The tools that can fulfil the request."""
    words: tuple[str, ...]
    """The words after the verb; quotations without quotation marks."""
    targets: tuple[str, ...]
    """Files to write or delete, commands to run, or places to send to."""
    literals: tuple[str, ...]
    """Quoted texts to send or to save."""
    to_sender: bool
    """True if the request is a reply to a sender."""
    to_owner: bool
    """True if the request is for the user, or names no recipient."""
    occasion: str
    """The tool whose next call a delayed request waits for; empty if it does not wait."""


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
_MAILS: Final = frozenset(("mail", "email", "message"))
_OCCASIONS: Final = {
    ("read", "mail"): "email.read",
    ("send", "mail"): MAIL,
    ("open", "page"): "web.open",
    ("read", "file"): "fs.read",
    ("write", "file"): WRITE,
    ("run", "command"): RUN,
}
"""What a delayed request can wait for: verb and noun, and the tool."""
_ENOUGH: Final = frozenset(("not", "never", "don't", "except", "without", "but", "unless"))
"""After these words, a clause names exceptions."""
_INTO: Final = frozenset(("to", "in", "into", "as", "onto", "over", "under", "called", "named"))
_TOWARDS: Final = frozenset(("to", "at", "via"))
_LISTED: Final = frozenset((",", "and", "or"))
"""What stands between the names of a list."""
_FILLERS: Final = frozenset(("the", "my", "your", "our", "a", "an", "file", "command", "new"))
_NAMES_FOLLOW: Final = _MAILS | {"page", "file", "command", "subject", "note", "site", "folder"}
"""Words that come before a name. In quotation marks, it is still a name."""
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
    occasion = ""
    if at < len(sentence) and _word(sentence[at]) in _WAITS:
        occasion, at = _occasion(sentence, at)
        at = _skip_lead_ins(sentence, at)
    while at < len(sentence) and _word(sentence[at]) in _KINDS:
        following = _next_clause(sentence, at + 1)
        if _KINDS[_word(sentence[at])]:
            yield _clause(sentence[at:following], sentence[at:], message, occasion)
        at = _skip_lead_ins(sentence, following)


def _occasion(sentence: list[_Token], at: int) -> tuple[str, int]:
    """Return what a delayed request waits for, and where it begins.

    An unknown occasion is the end of the sentence: nobody can tell when the request is due.
    """
    words = ["mail" if _word(token) in _MAILS else _word(token) for token in sentence]
    nouns = {noun for _, noun in _OCCASIONS}
    place = next((n for n in range(at, len(words)) if words[n] in nouns), at)
    found = (_OCCASIONS.get((verb, words[place]), "") for verb in words[at:place])
    occasion = next(filter(None, found), "")
    return occasion, place + 1 if occasion else len(words)


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


def _clause(clause: list[_Token], rest: list[_Token], message: str, occasion: str) -> Request:
    """Return a clause as a request. `rest` is the clause and all behind it in the sentence."""
    verb = _word(clause[0])
    kinds = _KINDS[verb]
    meant = (n for n, token in enumerate(clause) if _word(token) in _ENOUGH)
    said = clause[1 : next(meant, len(clause))]
    tokens = [token for token in said if token.kind != "mark"]
    words = tuple(token.text for token in tokens)
    spoken = {_word(token) for token in tokens}
    if kinds == (WRITE,):
        targets = _written(tokens)
    elif kinds == (DELETE,):
        targets = _names_at(said, 0)
    elif kinds == (RUN,):
        targets = tuple(_commands(clause, rest, message))
    else:
        targets = _places(said)
    respelt = not _RESPELLS.isdisjoint(message.lower().split())
    to_sender = verb in _REPLIES or "sender" in spoken
    return Request(
        kinds,
        words,
        targets,
        () if respelt else _literals(tokens, targets),
        to_sender,
        not spoken.isdisjoint(("me", "myself")) or not (targets or to_sender),
        occasion,
    )


def _written(tokens: list[_Token]) -> tuple[str, ...]:
    """Return the name before `with`, or the names after `to`, `in` or `as`, or the first name."""
    filled = next((n for n, token in enumerate(tokens) if _word(token) == "with"), 0)
    first = next((n for n, token in enumerate(tokens) if _word(token) not in _FILLERS), 0)
    if filled and first == filled - 1:
        return (tokens[first].text,)
    behind = [n + 1 for n, token in enumerate(tokens) if _word(token) in _INTO]
    return tuple(name for place in behind or [0] for name in _names_at(tokens, place)[:1])


def _names_at(tokens: list[_Token], at: int) -> tuple[str, ...]:
    """Return the name at a place, and the names that a list adds to it."""
    names: list[str] = []
    while True:
        while at < len(tokens) and (_word(tokens[at]) in _FILLERS or tokens[at].text == ":"):
            at += 1
        if at >= len(tokens) or tokens[at].kind == "mark":
            return tuple(names)
        names.append(tokens[at].text)
        at += 1
        joint = at
        while at < len(tokens) and _word(tokens[at]) in _LISTED:
            at += 1
        if at == joint:
            return tuple(names)


def _places(tokens: list[_Token]) -> tuple[str, ...]:
    """Return the addresses and URLs behind `to`; if there is no such word, all of them."""
    behind = [n + 1 for n, token in enumerate(tokens) if _word(token) in _TOWARDS]
    names = [name for place in behind for name in _names_at(tokens, place)]
    names = names if behind else [token.text for token in tokens]
    return tuple(name for name in names if ADDRESS.fullmatch(name) or "://" in name)


def _commands(clause: list[_Token], rest: list[_Token], message: str) -> Iterator[str]:
    """Yield the commands that a clause may mean: a quotation, or its words."""
    start = 1
    while start < len(rest) and _word(rest[start]) in _FILLERS:
        start += 1
    if start == len(rest):
        return
    if rest[start].kind == "quoted":
        yield rest[start].text
        return
    for last in {len(clause), len(rest)}:
        if last > start:
            yield message[rest[start].start : rest[last - 1].stop]


def _literals(tokens: list[_Token], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the quotations that are texts, not targets, subjects or names of documents."""
    return tuple(
        token.text
        for n, token in enumerate(tokens)
        if token.kind == "quoted"
        and token.text not in targets
        and (n == 0 or _word(tokens[n - 1]) not in _NAMES_FOLLOW)
        and not (ADDRESS.fullmatch(token.text) or "://" in token.text)
    )


def names_path(request: Request, path: str) -> bool:
    """Tell whether a request names this file."""
    return any(means_path(target, path) for target in request.targets)


def mentions_path(messages: list[str], path: str) -> bool:
    """Tell whether any message mentions this file."""
    return any(
        means_path(token.text, path)
        for message in messages
        for sentence in _sentences(message)
        for token in sentence
    )


def names_url(request: Request, url: str) -> bool:
    return any(same_url(place, url) for place in request.targets if "://" in place)


def names_some_url(request: Request) -> bool:
    return any("://" in place for place in request.targets)


def requests_now(context: Context) -> Iterator[Request]:
    """Yield what the user asks for now: in the last message, or in an earlier one that waited.

    If the user now asks to follow a text, an order that the user quoted earlier is a request too.
    """
    *earlier, now = context.user_messages
    yield from (request for request in requests(now) if is_due(request, context))
    for message in earlier:
        waiting = (request for request in requests(message) if request.occasion)
        yield from (request for request in waiting if is_due(request, context))
    if asks_to_follow(now):
        for message in earlier:
            yield from quoted_requests(message)


def is_due(request: Request, context: Context) -> bool:
    """Tell whether a request does not wait, or waited for a call of the current message."""
    if not request.occasion:
        return True
    turn = len(context.user_messages) - 1
    return any(
        event.name == request.occasion and event.turn == turn and event.ok
        for event in reversed(context.events)
    )


def is_asked(tool: str, target: str, context: Context) -> bool:
    """Tell whether the user asks for a call of `tool` on exactly this target."""
    return any(tool in each.kinds and _names(each, tool, target) for each in requests_now(context))


def says_so(request: Request, text: str) -> bool:
    """Tell whether a text has the words that the user asked to send or to save, if any."""
    return not request.literals or any(literal in text for literal in request.literals)


def _names(request: Request, tool: str, target: str) -> bool:
    if tool == RUN:
        return target.split() in [command.split() for command in request.targets]
    if tool in (WRITE, DELETE):
        return names_path(request, target)
    if tool == POST:
        return names_url(request, target)
    return target.lower() in (place.lower() for place in request.targets)
