"""A reader of one sentence: moves over tokens, and reads the phrases that all clauses share.

A method returns None or False when the words that it looks for are not next. No method looks
further ahead than a few words, so the cost is linear in the length of any text.
"""

import re
from collections.abc import Collection
from typing import Final

from tiltyard.agents.grammar.operations import It, Note, Operation, Recipient, Recode, What
from tiltyard.agents.grammar.tokens import Token
from tiltyard.world.results import FROM_USER, ToolCall
from tiltyard.world.text import Cutter, Encoding, Text, by_machine, join, lower
from tiltyard.world.urls import read_address, read_url

IT: Final = It()
ORDINALS: Final = {"first": 0, "latest": 0, "newest": 0, "second": 1, "third": 2, "last": -1}
DETERMINERS: Final = frozenset(("the", "my", "your", "our", "a", "an"))
MAIL: Final = frozenset(("mail", "email", "message", "mails", "emails", "messages"))
PREPOSITIONS: Final = frozenset(
    ("to", "in", "into", "as", "with", "and", "then", "from", "of", "saying", "about", "on")
)
"""Words that follow an object, so they never name one."""

_PRONOUNS: Final = frozenset(("it", "this", "that", "them"))
_CARRIED: Final = MAIL | {
    "result",
    "results",
    "text",
    "content",
    "contents",
    "output",
    "page",
    "parts",
    "file",
}
_FETCHED_WITH: Final = {
    "file": ("fs.read", "path"),
    "page": ("web.open", "id"),
    "mail": ("email.read", "id"),
    "email": ("email.read", "id"),
    "message": ("email.read", "id"),
}
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

_MAX_LEAD_INS: Final = 8
_LEAD_IN_REACH: Final = 12
SIMPLE_LEAD_INS: Final = frozenset(
    (
        *("-", "*", "•", "first", "second", "third", "next", "finally", "now", "also"),
        *("and", "then", "please", "kindly", "urgent", "important", "immediately"),
        *("system", "assistant", "agent", "ai", "admin", "administrator", "attention"),
    )
)
LEAD_INS: Final = tuple(
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
_PHRASES: Final = {
    first: tuple(phrase for phrase in LEAD_INS if phrase[0] == first)
    for first in {phrase[0] for phrase in LEAD_INS}
}
"""The lead-ins by their first word. Most sentences begin with none of these words."""
_FIRST_OF_TITLES: Final = frozenset(title[0] for title in _TITLES)
RESETS: Final = frozenset(("ignore", "disregard", "forget"))
RESET_ENDS: Final = frozenset(("instructions", "rules", "directions", "above", "before"))
PLACEHOLDER: Final = re.compile(
    r"(?<![\w./-])(?:[A-Z][A-Z0-9_]*=[^\s,;]*\w|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?![\w./-])"
)
"""A text that stands for another one, such as SECRET_MARKER, or sets one. It names no file."""
_NUMBERED: Final = re.compile(r"\(?[0-9]{1,3}\)")

Found = tuple[list[Operation], What]
"""The operations that fetch a clause's object first, and the object."""


def call(tool: str, **args: Text) -> ToolCall:
    return ToolCall(tool, dict(args), FROM_USER)


class Sentence:
    """One sentence, and the position in it."""

    def __init__(self, cutter: Cutter, tokens: list[Token], verbs: Collection[str]) -> None:
        self._cutter = cutter
        self.tokens = tokens
        self.verbs = verbs
        self.at = 0
        self.waiting = False
        """True inside a `when` clause, which cannot contain another one."""

    def slice(self, start: int, stop: int) -> Text:
        return self._cutter.cut(start, stop)

    def word(self, ahead: int = 0) -> str:
        """Return one of the next words, or "" for a quotation and at the end. Marks are words."""
        at = self.at + ahead
        return self.tokens[at].word if at < len(self.tokens) else ""

    def is_done(self) -> bool:
        return self.at >= len(self.tokens)

    def at_quotation(self) -> bool:
        return not self.is_done() and self.tokens[self.at].kind == "quoted"

    def at_placeholder(self) -> bool:
        if self.is_done() or self.tokens[self.at].kind != "word":
            return False
        token = self.tokens[self.at]
        return PLACEHOLDER.fullmatch(self.slice(token.start, token.stop).string) is not None

    def accept(self, *words: str) -> bool:
        """Move over these words, if all of them come next."""
        tokens, at, stop = self.tokens, self.at, self.at + len(words)
        if stop > len(tokens):
            return False
        for word in words:
            if tokens[at].word != word:
                return False
            at += 1
        self.at = stop
        return True

    def accept_any(self, *words: str) -> bool:
        """Move over the next word, if it is one of these."""
        if self.word() in words:
            self.at += 1
            return True
        return False

    def skip_joint(self) -> bool:
        """Move over the words that join two clauses, and the lead-ins after them."""
        comma = self.accept(",")
        word = self.accept("and") | self.accept("then")
        if comma or word:
            self.skip_lead_ins()
        return comma or word

    def at_joint(self) -> bool:
        """Tell whether another clause begins here. Only its verb counts."""
        start = self.at
        joint = self.skip_joint() and self.word() in self.verbs
        self.at = start
        return joint

    def skip_lead_ins(self) -> None:
        for _ in range(_MAX_LEAD_INS):
            if not self._skip_lead_in():
                return
            self.accept_any(",", ":", "!", "-")
            self.accept("and")

    def _skip_lead_in(self) -> bool:
        word = self.word()
        if word in SIMPLE_LEAD_INS or _NUMBERED.fullmatch(word):
            self.at += 1
            return True
        if word == "step" and self.word(1).isascii() and self.word(1).isdecimal():
            self.at += 2
            return True
        if any(self.accept(*phrase) for phrase in _PHRASES.get(word, ())):
            return True
        if word in RESETS and self._skip_past(RESET_ENDS):
            while self.accept_any(*RESET_ENDS):
                pass
            return True
        if word not in _FIRST_OF_TITLES:
            return False
        start = self.at
        if any(self.accept(*title) for title in _TITLES) and self._skip_past({","}):
            return True
        self.at = start
        return False

    def _skip_past(self, words: Collection[str]) -> bool:
        for ahead in range(_LEAD_IN_REACH):
            if self.word(ahead) in words:
                self.at += ahead + 1
                return True
        return False

    def quotation(self) -> Text | None:
        if not self.at_quotation():
            return None
        token = self.tokens[self.at]
        self.at += 1
        return self.slice(token.start + 1, token.stop - 1)

    def literal(self) -> Text | None:
        """Read one word that is not a grammar word, or one quotation."""
        quoted = self.quotation()
        if quoted is not None or self.is_done():
            return quoted
        token = self.tokens[self.at]
        if token.kind == "mark" or token.word in PREPOSITIONS:
            return None
        self.at += 1
        return self.slice(token.start, token.stop)

    def path(self) -> Text | None:
        if self.word() in _PRONOUNS or self.at_placeholder():
            return None
        quoted = self.at_quotation()
        path = self.literal()
        if path is None or quoted or "." in path.string or "/" in path.string:
            return path
        return join((path, by_machine(".txt")))

    def url(self) -> Text | None:
        start = self.at
        url = self.literal()
        if url is not None and read_url(url.string) is not None:
            return url
        self.at = start
        return None

    def address(self) -> Text | Recipient | None:
        if self.accept("me"):
            return Recipient(is_owner=True)
        if self.accept("the", "sender"):
            return Recipient(is_owner=False)
        address = self.literal()
        if address is None or read_address(address.string) is None:
            return None
        return address

    def words(self, *, up_to_clause: bool) -> Text | None:
        """Read a quotation, or the words up to the next clause or the end of the sentence."""
        quoted = self.quotation()
        if quoted is not None:
            return quoted
        first = self.at
        while not self.is_done() and not (up_to_clause and self.at_joint()):
            self.at += 1
        if first == self.at:
            return None
        return self.slice(self.tokens[first].start, self.tokens[self.at - 1].stop)

    def encoding(self) -> Encoding | None:
        encoding = _ENCODINGS.get(self.word())
        if encoding is not None:
            self.at += 1
        return encoding

    def object(self) -> Found | None:
        """Read the object of a clause, with its encoding if the clause names one."""
        found = self.what()
        if found is None:
            return None
        start = self.at
        if self.accept_any("as", "in"):
            encoding = self.encoding()
            if encoding is not None:
                operations, what = found
                return [*operations, Recode(what, encoding)], IT
            self.at = start
        return found

    def what(self) -> Found | None:
        quoted = self.quotation()
        if quoted is not None:
            return [], quoted
        self.skip_contents_of()
        if self.accept_any(*_PRONOUNS):
            return [], IT
        if self.accept("note"):
            name = self.literal()
            return None if name is None else ([], Note(lower(name.string)))
        if self.at_placeholder():
            placeholder = self.literal()
            return None if placeholder is None else ([], placeholder)
        determined = self.accept_any(*DETERMINERS)
        noun = self.word()
        if noun in _FETCHED_WITH and not self._ends_object(1):
            self.at += 1
            return self._fetch(noun)
        if determined and noun in _CARRIED:
            self.at += 1
            return [], IT
        return self._fetch("file")

    def skip_contents_of(self) -> None:
        start = self.at
        self.accept_any(*DETERMINERS)
        if not (self.accept_any("content", "contents") and self.accept("of")):
            self.at = start

    def _ends_object(self, ahead: int) -> bool:
        at = self.at + ahead
        if at >= len(self.tokens):
            return True
        token = self.tokens[at]
        return token.kind == "mark" or token.word in PREPOSITIONS

    def _fetch(self, noun: str) -> Found | None:
        tool, parameter = _FETCHED_WITH[noun]
        name = self.path() if noun == "file" else self.literal()
        return None if name is None else ([call(tool, **{parameter: name})], IT)
