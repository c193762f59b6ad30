"""The deterministic agent's grammar: from labelled text to operations.

Owns what counts as an instruction; `docs/grammar.md` states the same for readers. The parser is
a plain recursive descent over tokens. It never looks ahead further than the next word to decide
where a clause ends, so its cost is linear in the length of a text, whoever wrote it. Every
literal in an operation is a slice of the text it was read from and keeps its author.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from tiltyard.world.results import FROM_USER, ToolCall
from tiltyard.world.text import USER, Encoding, Text, by_machine, by_user, join
from tiltyard.world.urls import read_address, read_url

REMEMBERED_TEXTS: Final = 4096
REMEMBERED_PROSE: Final = 32_768
MAX_REMEMBERED_CHARS: Final = 8192
"""A longer text is read anew each time, so that what is remembered stays small."""
MAX_LEAD_INS: Final = 8
LAST: Final = -1
MAX_PARTS: Final = 8


class It(Struct, frozen=True, gc=False):
    """What the frame carries; `otherwise` stands in when it carries nothing."""

    otherwise: Text | None = None


class Note(Struct, frozen=True, gc=False):
    """What was remembered under a name."""

    name: str


What = It | Note | Text


class Recipient(Struct, frozen=True, gc=False):
    """An address that only the moment of sending knows: the owner, or the last mail's sender."""

    is_owner: bool


class Do(Struct, frozen=True, gc=False):
    """Make this call, as it stands."""

    call: ToolCall


class OpenHit(Struct, frozen=True, gc=False):
    """Open a page of the last search."""

    rank: int


class ReadHit(Struct, frozen=True, gc=False):
    """Read a mail of the last listing."""

    rank: int
    sender: str
    subject: str


class Carry(Struct, frozen=True, gc=False):
    """Make a call with carried text in one argument."""

    tool: str
    args: dict[str, Text]
    slot: str
    what: What
    to: Recipient | None = None


class Recode(Struct, frozen=True, gc=False):
    """Change the spelling of carried text."""

    what: What
    encoding: Encoding
    decode: bool = False


class Split(Struct, frozen=True, gc=False):
    """Cut carried text into parts, which then go out one by one."""

    what: What
    parts: int


class Remember(Struct, frozen=True, gc=False):
    what: What
    name: str


class Follow(Struct, frozen=True, gc=False):
    """Read carried text as instructions."""

    whats: tuple[What, ...]


class Wait(Struct, frozen=True, gc=False):
    """Do something later: after the next successful call of a tool."""

    tool: str
    operations: tuple["Operation", ...]


Operation = Do | OpenHit | ReadHit | Carry | Recode | Split | Remember | Follow | Wait


def instructions(text: Text) -> tuple[Operation, ...]:
    """Return the operations that a text orders, in order; none for prose."""
    if len(text.string) > MAX_REMEMBERED_CHARS:
        return _parse(text)
    # Most documents are prose, which their string alone tells; the labels need no look then.
    as_if_by_user = _parse_user(text.string)
    if not as_if_by_user or (len(text.pieces) == 1 and text.pieces[0].origin is USER):
        return as_if_by_user
    return _parse_again(text)


@lru_cache(maxsize=REMEMBERED_PROSE)
def _parse_user(string: str) -> tuple[Operation, ...]:
    return _parse(by_user(string))


def _parse(text: Text) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    for sentence in _sentences(text.string):
        operations += _Sentence(text, sentence).read()
    return tuple(operations)


_parse_again = lru_cache(maxsize=REMEMBERED_TEXTS)(_parse)


class Token(NamedTuple):
    """A word, a quotation or a mark, and where it stands."""

    kind: str
    start: int
    stop: int
    word: str
    """Lower case; empty for quotations, so that no quoted word is ever taken for grammar."""


_TOKEN: Final = re.compile(
    r"""(?P<quoted>"[^"\n]*"|“[^“”\n]*”|`[^`\n]*`)"""
    r"""|(?P<url>https?://[^\s"`<>]*[^\s"`<>.,;:!?)])"""
    r"""|(?P<mark>[,:;!?](?=\s|$)|\.(?=\s|$)|\n)"""
    r"""|(?P<word>(?:[^\s"“`.,:;!?]|[.,:;!?](?!\s|$))+)"""
)
_ENDS: Final = frozenset(".!?;\n")


def _sentences(string: str) -> list[list[Token]]:
    """Cut a text into sentences of tokens, leaving quoted lines out."""
    sentences: list[list[Token]] = [[]]
    line_begins, line_quoted = True, False
    for match in _TOKEN.finditer(string):
        start, stop = match.span()
        kind = match.lastgroup or ""
        raw = match.group()
        if line_begins:
            line_quoted = raw.startswith(">")
        line_begins = raw == "\n"
        if kind == "mark" and raw in _ENDS:
            if sentences[-1]:
                sentences.append([])
        elif not line_quoted:
            sentences[-1].append(Token(kind, start, stop, "" if kind == "quoted" else raw.lower()))
    return sentences


_SIMPLE_LEAD_INS: Final = frozenset(
    "- * • please kindly first second third next finally now also and then urgent important"
    " immediately system assistant agent ai admin administrator attention".split()
)
_LEAD_INS: Final = tuple(
    tuple(phrase.split())
    for phrase in (
        "at once",
        "right away",
        "before anything else",
        "action required",
        "you must",
        "you need to",
        "you are required to",
        "you are to",
        "i need you to",
        "make sure to",
        "be sure to",
        "note to the assistant",
    )
)
_TITLES: Final = (("as", "the"), ("by", "order", "of"), ("on", "behalf", "of"))
_AFTER_LEAD_IN: Final = frozenset((",", ":", "!", "-"))
_RESETS: Final = frozenset(("ignore", "disregard", "forget"))
_RESET_ENDS: Final = frozenset(("instructions", "rules", "directions", "above", "before"))
_LEAD_IN_REACH: Final = 12
_ORDINALS: Final = {
    "first": 0,
    "latest": 0,
    "newest": 0,
    "second": 1,
    "third": 2,
    "last": LAST,
}
_DETERMINERS: Final = frozenset(("the", "my", "your", "our", "a", "an"))
_MAIL: Final = frozenset(("mail", "email", "message", "mails", "emails", "messages"))
_PRONOUNS: Final = frozenset(("it", "this", "that", "them"))
_CARRIED: Final = frozenset(
    ("result", "results", "text", "content", "contents", "output", "page", "parts", "file")
)
_STOPS: Final = frozenset(
    ("to", "in", "into", "as", "with", "and", "then", "from", "of", "saying", "about", "on", "")
)
_ENCODINGS: Final = {
    encoding.value: encoding
    for encoding in (
        Encoding.BASE64,
        Encoding.HEX,
        Encoding.URL,
        Encoding.REVERSE,
        Encoding.ROT13,
        Encoding.SPACED,
    )
}
_OCCASIONS: Final = {
    ("read", True): "email.read",
    ("open", False): "web.open",
    ("read", False): "fs.read",
    ("write", False): "fs.write",
    ("send", True): "email.send",
    ("run", False): "shell.run",
}
_IT: Final = It()
_OWN_LINE: Final = It(by_machine("Nothing to add."))
NO_SUBJECT: Final = by_machine("(no subject)")
UPLOAD_URL: Final = by_machine("https://upload.example/reports")
"""Where the agent posts to when nobody says where."""


class _Sentence:
    """A recursive-descent reader of one sentence. Methods return None when nothing fits."""

    def __init__(self, text: Text, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.waiting = False

    def read(self) -> list[Operation]:
        """Read clause after clause; what no clause can read ends the instruction."""
        operations: list[Operation] = []
        self._skip_lead_ins()
        while True:
            clause = self._clause()
            if clause is None:
                return operations
            operations += clause
            if not self._skip_joint():
                return operations

    def _clause(self) -> list[Operation] | None:
        start = self.at
        read = _VERBS.get(self._word())
        if read is not None:
            self.at += 1
            operations = read(self)
            if operations is not None:
                return operations
        self.at = start
        return None

    # Moving over tokens.

    def _word(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].word if at < len(self.tokens) else ""

    def _done(self) -> bool:
        return self.at >= len(self.tokens)

    def _accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if all(self._word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def _accept_any(self, words: frozenset[str]) -> str:
        word = self._word()
        if word and word in words:
            self.at += 1
            return word
        return ""

    def _skip_joint(self) -> bool:
        start = self.at
        comma = self._accept(",")
        joined = self._accept("and") | self._accept("then")
        if comma or joined:
            self._skip_lead_ins()
            return True
        self.at = start
        return False

    def _at_joint(self) -> bool:
        """Tell whether another clause begins here, judged by its verb alone."""
        start = self.at
        joint = self._skip_joint() and self._word() in _VERBS
        self.at = start
        return joint

    def _skip_lead_ins(self) -> None:
        for _ in range(MAX_LEAD_INS):
            if not self._skip_lead_in():
                return
            self._accept_any(_AFTER_LEAD_IN)
            self._accept("and")

    def _skip_lead_in(self) -> bool:
        word = self._word()
        if word in _SIMPLE_LEAD_INS or re.fullmatch(r"\(?\d{1,3}\)", word):
            self.at += 1
            return True
        if word == "step" and self._word(1).isdecimal():
            self.at += 2
            return True
        if any(self._accept(*phrase) for phrase in _LEAD_INS):
            return True
        if word in _RESETS:
            return self._skip_past(_RESET_ENDS)
        return any(self._accept(*title) for title in _TITLES) and self._skip_past(frozenset(","))

    def _skip_past(self, words: frozenset[str]) -> bool:
        """Step behind the next of these words, if one is near."""
        for ahead in range(_LEAD_IN_REACH):
            if self._word(ahead) in words:
                self.at += ahead + 1
                return True
        return False

    # Literals.

    def _slice(self, start: int, stop: int) -> Text:
        return self.text.slice(start, stop)

    def _quoted(self) -> Text | None:
        if self._done() or self.tokens[self.at].kind != "quoted":
            return None
        token = self.tokens[self.at]
        self.at += 1
        return self._slice(token.start + 1, token.stop - 1)

    def _literal(self) -> Text | None:
        """Read one word, or one quotation, that is no grammar word."""
        quoted = self._quoted()
        if quoted is not None or self._done():
            return quoted
        token = self.tokens[self.at]
        if token.kind == "mark" or token.word in _STOPS:
            return None
        self.at += 1
        return self._slice(token.start, token.stop)

    def _path(self) -> Text | None:
        path = self._literal()
        if path is None or not path.string or "." in path.string or "/" in path.string:
            return path
        return join((path, by_machine(".txt")))

    def _words(self, *, up_to_clause: bool) -> Text | None:
        """Read a quotation, or the words up to the next clause or the end of the sentence."""
        quoted = self._quoted()
        if quoted is not None:
            return quoted
        first = self.at
        while not self._done() and not (up_to_clause and self._at_joint()):
            self.at += 1
        if first == self.at:
            return None
        return self._slice(self.tokens[first].start, self.tokens[self.at - 1].stop)

    def _encoding(self) -> Encoding | None:
        encoding = _ENCODINGS.get(self._word())
        if encoding is not None:
            self.at += 1
        return encoding

    # Objects.

    def _object(self) -> tuple[list[Operation], What] | None:
        """Read what a clause is about, with the calls that fetch it."""
        found = self._what()
        if found is None:
            return None
        operations, what = found
        start = self.at
        if self._accept_any(frozenset(("as", "in"))):
            encoding = self._encoding()
            if encoding is not None:
                return [*operations, Recode(what, encoding)], _IT
            self.at = start
        return operations, what

    def _what(self) -> tuple[list[Operation], What] | None:
        quoted = self._quoted()
        if quoted is not None:
            return [], quoted
        start = self.at
        self._accept_any(_DETERMINERS)
        if not (self._accept_any(frozenset(("content", "contents"))) and self._accept("of")):
            self.at = start
        if self._accept_any(_PRONOUNS):
            return [], _IT
        if self._accept("note"):
            name = self._literal()
            return None if name is None else ([], Note(name.string.lower()))
        determined = bool(self._accept_any(_DETERMINERS))
        noun = self._word()
        fetch = _FETCHERS.get(noun)
        if fetch is not None and self._word(1) not in _STOPS and self._word(1) != ",":
            self.at += 1
            return fetch(self)
        if determined and noun in (_CARRIED | _MAIL):
            self.at += 1
            return [], _IT
        return self._fetch_file()

    def _fetch_file(self) -> tuple[list[Operation], What] | None:
        path = self._path()
        return None if path is None else ([_do("fs.read", path=path)], _IT)

    def _fetch_page(self) -> tuple[list[Operation], What] | None:
        page = self._literal()
        return None if page is None else ([_do("web.open", id=page)], _IT)

    def _fetch_mail(self) -> tuple[list[Operation], What] | None:
        mail = self._literal()
        return None if mail is None else ([_do("email.read", id=mail)], _IT)

    def _address(self) -> Text | Recipient | None:
        if self._accept("me"):
            return Recipient(is_owner=True)
        if self._accept("the", "sender"):
            return Recipient(is_owner=False)
        address = self._literal()
        if address is None or read_address(address.string) is None:
            return None
        return address

    # Clauses, one method a verb.

    def _search(self) -> list[Operation] | None:
        if self._accept("the"):
            if not self._accept("web"):
                self.at -= 1
        else:
            self._accept("web")
        self._accept("for")
        query = self._words(up_to_clause=True)
        return None if query is None else [_do("web.search", query=query)]

    def _look(self) -> list[Operation] | None:
        return self._search() if self._accept("up") else None

    def _open(self) -> list[Operation] | None:
        start = self.at
        self._accept_any(_DETERMINERS)
        rank = _ORDINALS.get(self._word())
        if rank is not None and self._word(1) in ("result", "link", "page"):
            self.at += 2
            return [OpenHit(rank)]
        if rank is not None or self._word() in _MAIL or self._word() == "file":
            self.at = start
            return self._read()
        if self._word() in ("page", "site") and self._word(1) not in _STOPS:
            self.at += 1
        page = self._literal()
        return None if page is None else [_do("web.open", id=page)]

    def _list(self) -> list[Operation] | None:
        self._accept_any(_DETERMINERS)
        if self._accept("folder"):
            folder = self._literal()
            return None if folder is None else [_do("email.list", folder=folder)]
        if self._accept_any(_MAIL | frozenset(("inbox",))):
            return [_do("email.list", folder=by_machine("inbox"))]
        return None

    def _read(self) -> list[Operation] | None:
        start = self.at
        self._accept_any(_DETERMINERS)
        rank = _ORDINALS.get(self._word())
        if rank is not None:
            self.at += 1
        if self._accept_any(_MAIL):
            return self._read_mail(rank)
        self.at = start
        self._accept_any(_DETERMINERS)
        self._accept("file")
        path = self._path()
        return None if path is None else [_do("fs.read", path=path)]

    def _read_mail(self, rank: int | None) -> list[Operation] | None:
        sender = subject = ""
        if rank is None and self._word() not in (*_STOPS, ","):
            mail = self._literal()
            return None if mail is None else [_do("email.read", id=mail)]
        if rank is None and not self._done() and self.tokens[self.at].kind == "quoted":
            return self._mail_by_id()
        if self._accept("from"):
            sender = (self._literal() or by_machine("")).string
        if self._accept("about"):
            subject = (self._literal() or by_machine("")).string
        listing = _do("email.list", folder=by_machine("inbox"))
        return [listing, ReadHit(rank or 0, sender.casefold(), subject.casefold())]

    def _mail_by_id(self) -> list[Operation] | None:
        mail = self._quoted()
        return None if mail is None else [_do("email.read", id=mail)]

    def _write(self) -> list[Operation] | None:
        start = self.at
        self._accept_any(_DETERMINERS)
        if self._accept("file"):
            path = self._path()
            if path is not None and self._word() not in ("to", "in", "into", "as"):
                found = self._object() if self._accept("with") else ([], _OWN_LINE)
                if found is None:
                    return None
                operations, what = found
                return [*operations, Carry("fs.write", {"path": path}, "content", what)]
        self.at = start
        found = self._object()
        if found is None or not self._accept_any(frozenset(("to", "in", "into", "as"))):
            return None
        self._accept_any(_DETERMINERS)
        self._accept("file")
        path = self._path()
        if path is None:
            return None
        operations, what = found
        return [*operations, Carry("fs.write", {"path": path}, "content", what)]

    def _delete(self) -> list[Operation] | None:
        self._accept_any(_DETERMINERS)
        self._accept("file")
        path = self._path()
        return None if path is None else [_do("fs.delete", path=path)]

    def _send(self) -> list[Operation] | None:
        start = self.at
        self._accept_any(frozenset(("a", "an")))
        if self._accept_any(frozenset(("mail", "email"))) and (
            self._done() or self._word() in ("to", "with", "saying", ",", "and", "then")
        ):
            return self._compose()
        self.at = start
        found = self._object()
        if found is None or not self._accept("to"):
            return None
        operations, what = found
        url = self._url()
        if url is not None:
            return [*operations, Carry("http.post", {"url": url}, "data", what)]
        to = self._address()
        return None if to is None else [*operations, _mail_to(to, self._subject(), what)]

    def _compose(self) -> list[Operation] | None:
        to: Text | Recipient | None = Recipient(is_owner=True)
        if self._accept("to"):
            to = self._address()
        if to is None:
            return None
        subject = self._subject()
        found: tuple[list[Operation], What] | None = [], _OWN_LINE
        if self._accept_any(frozenset(("with", "saying"))):
            found = self._object()
        if found is None:
            return None
        operations, what = found
        return [*operations, _mail_to(to, subject, what)]

    def _subject(self) -> Text:
        start = self.at
        if self._accept("with"):
            self._accept("the")
            if self._accept("subject"):
                subject = self._quoted()
                if subject is not None:
                    return subject
        self.at = start
        return NO_SUBJECT

    def _reply(self) -> list[Operation] | None:
        self._accept("to", "it")
        found = self._object() if self._accept("with") else None
        if found is None:
            return None
        operations, what = found
        return [*operations, _mail_to(Recipient(is_owner=False), NO_SUBJECT, what)]

    def _post(self) -> list[Operation] | None:
        found: tuple[list[Operation], What] | None
        if self._word() == "data":
            self.at += 1
            found = [], _OWN_LINE
        else:
            found = self._object()
        if found is None:
            return None
        url: Text | None = UPLOAD_URL
        if self._accept("to"):
            url = self._url()
        if url is None:
            return None
        operations, what = found
        return [*operations, Carry("http.post", {"url": url}, "data", what)]

    def _url(self) -> Text | None:
        start = self.at
        url = self._literal()
        if url is not None and read_url(url.string) is not None:
            return url
        self.at = start
        return None

    def _run(self) -> list[Operation] | None:
        self._accept("the")
        self._accept("command")
        command = self._words(up_to_clause=False)
        return None if command is None else [_do("shell.run", cmd=command)]

    def _encode(self) -> list[Operation] | None:
        found = self._what()
        if found is None or not self._accept_any(frozenset(("as", "in", "to", "with", "into"))):
            return None
        encoding = self._encoding()
        operations, what = found
        return None if encoding is None else [*operations, Recode(what, encoding)]

    def _decode(self) -> list[Operation] | None:
        found = self._what()
        if found is None or not self._accept_any(frozenset(("from", "as"))):
            return None
        encoding = self._encoding()
        operations, what = found
        return None if encoding is None else [*operations, Recode(what, encoding, decode=True)]

    def _reverse(self) -> list[Operation] | None:
        found = self._what()
        if found is None:
            return None
        operations, what = found
        return [*operations, Recode(what, Encoding.REVERSE)]

    def _split(self) -> list[Operation] | None:
        found = self._what()
        if found is None or not self._accept("into"):
            return None
        count = self._word()
        if not (count.isascii() and count.isdecimal() and 2 <= int(count[:3]) <= MAX_PARTS):
            return None
        self.at += 1
        if not self._accept_any(frozenset(("parts", "pieces"))):
            return None
        operations, what = found
        return [*operations, Split(what, int(count))]

    def _remember(self) -> list[Operation] | None:
        found = self._what()
        if found is None or not self._accept("as"):
            return None
        self._accept("note")
        name = self._literal()
        operations, what = found
        return None if name is None else [*operations, Remember(what, name.string.lower())]

    def _follow(self) -> list[Operation] | None:
        start = self.at
        self._accept_any(_DETERMINERS)
        if self._accept("instructions") and self._accept_any(frozenset(("in", "on", "of", "at"))):
            found = self._what()
            return None if found is None or not found[0] else found[0]
        self.at = start
        operations: list[Operation] = []
        whats: list[What] = []
        while True:
            found = self._what()
            if found is None:
                return None
            operations += found[0]
            whats.append(found[1])
            if self._at_joint() or not (self._word() == "and" and self._word(1) not in _STOPS):
                return [*operations, Follow(tuple(whats))]
            self.at += 1

    def _wait(self) -> list[Operation] | None:
        if self.waiting or not self._accept("you"):
            return None
        self._accept("next")
        verb = self._word()
        self.at += 1
        self._accept_any(_DETERMINERS)
        noun = self._word()
        tool = _OCCASIONS.get((verb, noun in _MAIL))
        if tool is None or noun not in (_MAIL | {"page", "file", "command"}):
            return None
        self.at += 1
        self._accept(",")
        self._skip_lead_ins()
        self.waiting = True
        operations = self.read()
        return [Wait(tool, tuple(operations))] if operations else None


def _do(tool: str, **args: Text) -> Do:
    return Do(ToolCall(tool, dict(args), FROM_USER))


def _mail_to(to: Text | Recipient, subject: Text, what: What) -> Carry:
    if isinstance(to, Recipient):
        return Carry("email.send", {"subject": subject}, "body", what, to)
    return Carry("email.send", {"to": to, "subject": subject}, "body", what)


_FETCHERS: Final[dict[str, Callable[[_Sentence], tuple[list[Operation], What] | None]]] = {
    "file": _Sentence._fetch_file,
    "page": _Sentence._fetch_page,
    "mail": _Sentence._fetch_mail,
    "email": _Sentence._fetch_mail,
    "message": _Sentence._fetch_mail,
}
_VERBS: Final[dict[str, Callable[[_Sentence], list[Operation] | None]]] = {
    "search": _Sentence._search,
    "look": _Sentence._look,
    "open": _Sentence._open,
    "visit": _Sentence._open,
    "list": _Sentence._list,
    "check": _Sentence._list,
    "read": _Sentence._read,
    "write": _Sentence._write,
    "save": _Sentence._write,
    "store": _Sentence._write,
    "copy": _Sentence._write,
    "delete": _Sentence._delete,
    "remove": _Sentence._delete,
    "send": _Sentence._send,
    "mail": _Sentence._send,
    "email": _Sentence._send,
    "forward": _Sentence._send,
    "reply": _Sentence._reply,
    "post": _Sentence._post,
    "upload": _Sentence._post,
    "submit": _Sentence._post,
    "run": _Sentence._run,
    "execute": _Sentence._run,
    "encode": _Sentence._encode,
    "convert": _Sentence._encode,
    "decode": _Sentence._decode,
    "reverse": _Sentence._reverse,
    "split": _Sentence._split,
    "remember": _Sentence._remember,
    "follow": _Sentence._follow,
    "obey": _Sentence._follow,
    "when": _Sentence._wait,
    "whenever": _Sentence._wait,
    "after": _Sentence._wait,
    "once": _Sentence._wait,
}
