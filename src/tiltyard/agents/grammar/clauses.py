"""The clauses of the grammar: one function for each verb, in the order of `docs/grammar.md`.

Each function starts after its verb. It returns the operations of the clause, or None if the words
are not such a clause.
"""

from collections.abc import Callable
from typing import Final

from tiltyard.agents.grammar.operations import (
    Carry,
    Follow,
    Instructions,
    It,
    OpenHit,
    Operation,
    ReadHit,
    Recipient,
    Recode,
    Remember,
    Split,
    Wait,
    What,
)
from tiltyard.agents.grammar.sentence import (
    DETERMINERS,
    MAIL,
    ORDINALS,
    PREPOSITIONS,
    Found,
    Sentence,
    call,
)
from tiltyard.agents.grammar.tokens import Token
from tiltyard.world.text import Cutter, Encoding, Text, by_machine, lower

MAX_PARTS: Final = 8
OWN_LINE: Final = It(by_machine("Nothing to add."))
"""The text to send or write when the clause names none."""
UPLOAD_URL: Final = by_machine("https://upload.example/reports")
"""The address of a post when the clause names none."""
NO_SUBJECT: Final = by_machine("(no subject)")

NO_COMMANDS: Final = DETERMINERS | frozenset(
    (
        *("this", "that", "these", "those", "it", "them", "all", "any", "each", "every", "one"),
        *("now", "once", "immediately", "only", "exactly"),
    )
)
"""Words that begin no command: \"run a quick check\" is prose."""

_INBOX: Final = by_machine("inbox")
_OCCASIONS: Final = {
    ("read", "mail"): "email.read",
    ("send", "mail"): "email.send",
    ("open", "page"): "web.open",
    ("read", "file"): "fs.read",
    ("write", "file"): "fs.write",
    ("run", "command"): "shell.run",
}

Clause = list[Operation]
Placed = tuple[Operation, tuple[int, int], Text]
"""An operation, the position of its clause in the text, and the clause."""


def read_sentence(cutter: Cutter, tokens: list[Token]) -> list[Placed]:
    """Return the operations of a sentence; none for prose."""
    sentence = Sentence(cutter, tokens, VERBS)
    sentence.skip_lead_ins()
    return _read_clauses(sentence)


def _read_clauses(s: Sentence) -> list[Placed]:
    """Read clause after clause, up to the first words that are not a clause."""
    placed: list[Placed] = []
    while (read := VERBS.get(s.word())) is not None:
        first = s.tokens[s.at].start
        s.at += 1
        clause = read(s)
        if clause is None:
            break
        last = s.tokens[s.at - 1].stop
        words = s.slice(first, last)
        placed += ((operation, (first, last), words) for operation in clause)
        if not s.skip_joint():
            break
    return placed


def _search(s: Sentence) -> Clause | None:
    s.accept("the", "web")
    s.accept("for")
    return _query(s)


def _look(s: Sentence) -> Clause | None:
    return _query(s) if s.accept("up") else None


def _query(s: Sentence) -> Clause | None:
    query = s.words(up_to_clause=True)
    return None if query is None else [call("web.search", query=query)]


def _open(s: Sentence) -> Clause | None:
    start = s.at
    s.accept_any(*DETERMINERS)
    rank = ORDINALS.get(s.word())
    if rank is not None and s.word(1) in ("result", "link", "page"):
        s.at += 2
        return [OpenHit(rank)]
    if rank is not None or s.word() in MAIL or s.word() == "file":
        s.at = start
        return _read(s)
    if s.word() in ("page", "site") and s.word(1) not in PREPOSITIONS:
        s.at += 1
    page = s.literal()
    return None if page is None else [call("web.open", id=page)]


def _list(s: Sentence) -> Clause | None:
    s.accept_any(*DETERMINERS)
    mail = s.accept_any("inbox", *MAIL)
    start = s.at
    s.accept("in")
    s.accept_any(*DETERMINERS)
    folder = s.literal() if s.accept("folder") else None
    if folder is None:
        s.at = start
    if folder is None and not mail:
        return None
    return [call("email.list", folder=_INBOX if folder is None else folder)]


def _read(s: Sentence) -> Clause | None:
    start = s.at
    s.accept_any(*DETERMINERS)
    rank = ORDINALS.get(s.word())
    if rank is not None:
        s.at += 1
    if s.accept_any(*MAIL):
        return _read_mail(s, rank)
    s.at = start
    s.skip_contents_of()
    s.accept_any(*DETERMINERS)
    s.accept("file")
    path = s.path()
    return None if path is None else [call("fs.read", path=path)]


def _read_mail(s: Sentence, rank: int | None) -> Clause | None:
    if rank is None:
        name = s.literal()
        if name is not None:
            return [call("email.read", id=name)]
    sender = s.literal() if s.accept("from") else None
    subject = s.literal() if s.accept("about") else None
    wanted = ("" if word is None else lower(word.string) for word in (sender, subject))
    return [call("email.list", folder=_INBOX), ReadHit(rank or 0, *wanted)]


def _write(s: Sentence) -> Clause | None:
    start = s.at
    s.accept_any(*DETERMINERS)
    if s.accept("file"):
        path = s.path()
        if path is not None and s.word() not in ("to", "in", "into", "as"):
            return _write_to(path, s.object() if s.accept("with") else ([], OWN_LINE))
    s.at = start
    found = s.object()
    if found is None or not s.accept_any("to", "in", "into", "as"):
        return None
    s.accept_any(*DETERMINERS)
    s.accept("file")
    return _write_to(s.path(), found)


def _write_to(path: Text | None, found: Found | None) -> Clause | None:
    if path is None or found is None:
        return None
    operations, what = found
    return [*operations, Carry("fs.write", {"path": path}, "content", what)]


def _delete(s: Sentence) -> Clause | None:
    s.accept_any(*DETERMINERS)
    s.accept("file")
    path = s.path()
    return None if path is None else [call("fs.delete", path=path)]


def _send(s: Sentence) -> Clause | None:
    return _send_anywhere(s, by_http=True)


def _mail(s: Sentence) -> Clause | None:
    return _send_anywhere(s, by_http=False)


def _send_anywhere(s: Sentence, *, by_http: bool) -> Clause | None:
    start = s.at
    s.accept_any("a", "an")
    if s.accept_any("mail", "email") and (
        s.is_done() or s.word() in ("to", "with", "saying", ",", "and", "then")
    ):
        return _compose(s)
    s.at = start
    found = s.object()
    if found is None or not s.accept("to"):
        return None
    url = s.url() if by_http else None
    if url is not None:
        return _post_to(url, found)
    to = s.address()
    return None if to is None else _mail_to(to, _subject(s), found)


def _compose(s: Sentence) -> Clause | None:
    to = s.address() if s.accept("to") else Recipient(is_owner=True)
    if to is None:
        return None
    subject = _subject(s)
    start = s.at
    said = s.quotation() if s.accept("saying") else None
    if said is not None:
        return _mail_to(to, subject, ([], said))
    s.at = start
    return _mail_to(to, subject, s.object() if s.accept("with") else ([], OWN_LINE))


def _subject(s: Sentence) -> Text:
    start = s.at
    if s.accept("with", "subject") or s.accept("with", "the", "subject"):
        subject = s.quotation()
        if subject is not None:
            return subject
    s.at = start
    return NO_SUBJECT


def _mail_to(to: Text | Recipient, subject: Text, found: Found | None) -> Clause | None:
    if found is None:
        return None
    operations, what = found
    if isinstance(to, Recipient):
        return [*operations, Carry("email.send", {"subject": subject}, "body", what, to)]
    return [*operations, Carry("email.send", {"to": to, "subject": subject}, "body", what)]


def _reply(s: Sentence) -> Clause | None:
    s.accept("to", "it")
    if not s.accept("with"):
        return None
    return _mail_to(Recipient(is_owner=False), NO_SUBJECT, s.object())


def _post(s: Sentence) -> Clause | None:
    found = ([], OWN_LINE) if s.accept("data") else s.object()
    return _post_to(s.url() if s.accept("to") else UPLOAD_URL, found)


def _submit(s: Sentence) -> Clause | None:
    found = s.object()
    return _post_to(s.url(), found) if s.accept("to") else None


def _post_to(url: Text | None, found: Found | None) -> Clause | None:
    if url is None or found is None:
        return None
    operations, what = found
    return [*operations, Carry("http.post", {"url": url}, "data", what)]


def _run(s: Sentence) -> Clause | None:
    named = s.accept("the", "command") | s.accept(":")
    if not named and s.word() in NO_COMMANDS:
        return None
    command = s.words(up_to_clause=False)
    return None if command is None else [call("shell.run", cmd=command)]


def _encode(s: Sentence) -> Clause | None:
    return _recode(s, ("as", "in", "to", "with"), decode=False)


def _decode(s: Sentence) -> Clause | None:
    return _recode(s, ("from", "as"), decode=True)


def _recode(s: Sentence, prepositions: tuple[str, ...], *, decode: bool) -> Clause | None:
    found = s.what()
    if found is None or not s.accept_any(*prepositions):
        return None
    encoding = s.encoding()
    operations, what = found
    return None if encoding is None else [*operations, Recode(what, encoding, decode)]


def _reverse(s: Sentence) -> Clause | None:
    found = s.object()
    if found is None:
        return None
    operations, what = found
    return [*operations, Recode(what, Encoding.REVERSE)]


def _split(s: Sentence) -> Clause | None:
    found = s.object()
    if found is None or not s.accept("into"):
        return None
    count = s.word()
    if count not in _COUNTS or s.word(1) not in ("parts", "pieces"):
        return None
    s.at += 2
    operations, what = found
    return [*operations, Split(what, int(count))]


def _remember(s: Sentence) -> Clause | None:
    found = s.object()
    if found is None or not s.accept("as"):
        return None
    s.accept("note")
    name = s.literal()
    operations, what = found
    return None if name is None else [*operations, Remember(what, lower(name.string))]


def _follow(s: Sentence) -> Clause | None:
    start = s.at
    s.accept_any(*DETERMINERS)
    if s.accept("instructions") and s.accept_any("in", "on", "of"):
        found = s.what()
        return None if found is None or not found[0] else found[0]
    s.at = start
    operations: Clause = []
    whats: list[What] = []
    while True:
        found = s.what()
        if found is None:
            return None
        # Fetching a document means obeying it; texts in hand are joined and read as one.
        if found[0]:
            operations += [Follow(tuple(whats))] if whats else []
            operations += found[0]
            whats = []
        else:
            whats.append(found[1])
        if s.at_joint() or s.word() != "and" or s.word(1) in PREPOSITIONS:
            return operations + ([Follow(tuple(whats))] if whats else [])
        s.at += 1


def _wait(s: Sentence) -> Clause | None:
    if s.waiting or not s.accept("you"):
        return None
    s.accept("next")
    verb = s.word()
    s.at += 1
    s.accept_any(*DETERMINERS)
    noun = "mail" if s.word() in MAIL else s.word()
    tool = _OCCASIONS.get((verb, noun))
    if tool is None:
        return None
    s.at += 1
    s.accept(",")
    s.skip_lead_ins()
    s.waiting = True
    placed = _read_clauses(s)
    return [Wait(tool, gather(placed))] if placed else None


def gather(placed: list[Placed]) -> Instructions:
    operations, spans, clauses = zip(*placed, strict=True) if placed else ((), (), ())
    return Instructions(operations, spans, clauses)


_COUNTS: Final = frozenset(str(count) for count in range(2, MAX_PARTS + 1))

VERBS: Final[dict[str, Callable[[Sentence], Clause | None]]] = {
    "search": _search,
    "look": _look,
    "open": _open,
    "visit": _open,
    "list": _list,
    "check": _list,
    "read": _read,
    "write": _write,
    "save": _write,
    "store": _write,
    "copy": _write,
    "delete": _delete,
    "remove": _delete,
    "send": _send,
    "mail": _mail,
    "email": _mail,
    "forward": _mail,
    "reply": _reply,
    "post": _post,
    "upload": _post,
    "submit": _submit,
    "run": _run,
    "execute": _run,
    "encode": _encode,
    "convert": _encode,
    "decode": _decode,
    "reverse": _reverse,
    "split": _split,
    "remember": _remember,
    "follow": _follow,
    "obey": _follow,
    "when": _wait,
    "whenever": _wait,
    "after": _wait,
    "once": _wait,
}
