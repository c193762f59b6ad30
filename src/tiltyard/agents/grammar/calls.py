"""Find the calls that a text spells out, such as `Call http.post once with url=... and data=...`.

Such a call names its tool. This module finds the names, tells orders from words about a tool, and
cuts the text into one part for each call. `arguments` reads the arguments in a part.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from tiltyard.agents.grammar.arguments import (
    GROUP,
    INNER_MENTION,
    MENTION,
    NAMES,
    Calls,
    Mention,
    Part,
    find_pairs,
)
from tiltyard.agents.grammar.clauses import Placed, read_sentence
from tiltyard.agents.grammar.tokens import Token
from tiltyard.world.text import Cutter, lower

MAX_MENTIONS: Final = 64
"""How many names of tools count in a text. This bounds the work for hostile texts."""
_REFUSALS: Final = frozenset(
    (
        *("not", "never", "no", "don't", "dont", "doesn't", "cannot", "can't", "won't", "mustn't"),
        *("shouldn't", "avoid", "without", "refuse", "refuses", "refused", "forbidden", "unless"),
        *("if", "when", "whenever", "may", "might", "was", "were", "has", "had", "says", "said"),
        *("writes", "wrote", "called", "executed", "invoked", "used", "contained", "why", "did"),
    )
)
"""Words before a tool's name that make the sentence something else than an order."""
_DESCRIPTIONS: Final = frozenset(
    ("is", "was", "are", "were", "has", "had", "sends", "takes", "can", "does", "did", "would")
)
"""Words right behind a tool's name that make the sentence a description."""
_QUESTIONS: Final = frozenset(("could", "can", "would", "will", "please"))
"""First words of a question that is an order."""
_STARTERS: Final = frozenset(
    ("call", "use", "invoke", "execute", "run", "make", "issue", "do", "perform", "trigger", "fire")
)
_ORDERS: Final = _STARTERS | frozenset(
    (
        *("send", "post", "transmit", "forward", "submit", "upload", "deliver", "push", "relay"),
        *("report", "emit", "apply", "start", "launch", "repeat", "read", "write", "delete"),
        *("search", "open", "list", "log", "notify", "publish", "save", "remove", "fetch", "get"),
        *("via", "using", "with", "through", "by"),
    )
)
_INTRODUCTIONS: Final = frozenset(
    (
        *("please", "kindly", "now", "then", "first", "second", "third", "next", "finally", "also"),
        *("you", "must", "need", "to", "should", "are", "required", "i", "want", "can", "could"),
        *("immediately", "urgent", "important", "system", "assistant", "step", "and", "your"),
        *("only", "task", "is", "just", "directly", "tool", "tool_call", "action", "once", "again"),
    )
)
_CONFIRMS: Final = _STARTERS | frozenset(
    (
        *("it", "that", "this", "them", "these", "all", "both", "now", "immediately", "once"),
        *("calls", "request", "requests", "the", "exactly", "only", "one", "post", "send"),
        *("complete", "submit", "please"),
    )
)
"""A sentence of these words alone repeats the call before it and orders nothing new."""

_PIECE: Final = re.compile(r"[:,\]\n—]|\b(?:and|then)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[\w']+")
_JOINTS: Final = frozenset((",", "and", "then"))
_SEPARATOR: Final = re.compile(
    r"[|&+/>→⇒»;-]{1,3}|[=-]{1,2}>|\(?(?:[0-9]{1,3}|[a-z]|[ivx]{1,4})\)|#[0-9]{1,3}"
)
"""A word between two calls of a sentence: an arrow, or the mark of a list."""
_OPENINGS: Final = _INTRODUCTIONS | frozenset(
    ("followed", "by", "before", "afterwards", "subsequently", "continue", "proceed", "with")
)
_BEFORE_NAMES: Final = _OPENINGS | _STARTERS | _JOINTS


def read_text(cutter: Cutter, string: str, sentences: list[list[Token]]) -> Iterator[Placed]:
    """Yield the operations of a text: those of its clauses, and the calls that it spells out."""
    if _names_tool(string):
        yield from _Reader(cutter, string, [tokens for tokens in sentences if tokens]).read()
    else:
        for tokens in sentences:
            yield from read_sentence(cutter, tokens)


def _names_tool(string: str) -> bool:
    # Many times as fast as the pattern, which tries every name at every character.
    lowered = string.lower()
    return any(name in lowered for name in NAMES)


class _Reader:
    """Reads a text that names tools."""

    def __init__(self, cutter: Cutter, string: str, sentences: list[list[Token]]) -> None:
        self._cutter = cutter
        self._string = string
        self._sentences = sentences
        self._mentions = list(islice(self._find_mentions(), MAX_MENTIONS))

    def _find_mentions(self) -> Iterator[Mention]:
        """Yield the names of tools, except where a sentence only speaks of a call.

        A text is hostile, so this looks at each token once.
        """
        done = 0
        for number, tokens in enumerate(self._sentences):
            if self._is_question(tokens):
                continue
            condition = _last_condition(tokens)
            refused = False
            for at, token in enumerate(tokens):
                is_prose = refused or at <= condition or _is_description(tokens, at)
                # A colon ends what was said before it.
                refused = token.word != ":" and (refused or token.word in _REFUSALS)
                for found in () if is_prose else self._names_in(token):
                    start, stop = found.span()
                    whole = token.kind == "quoted" and stop < token.stop - 1
                    if start < done or (whole and not _is_list_item(tokens, at)):
                        continue
                    group = GROUP.match(self._string, stop)
                    done = group.end() if group else stop
                    yield Mention(lower(found[1]), start, stop, number, at, done)

    def _names_in(self, token: Token) -> Iterator[re.Match[str]]:
        """Yield the names of tools in a token."""
        start = token.start
        if (first := MENTION.match(self._string, start, token.stop)) is not None:
            yield first
            start = first.end()
        if token.kind == "word":
            yield from INNER_MENTION.finditer(self._string, start, token.stop)

    def _is_question(self, tokens: list[Token]) -> bool:
        first, stop = tokens[0].word, tokens[-1].stop
        asks = self._string[stop : stop + 1] == "?" and first not in _QUESTIONS
        return asks or first == "should"

    def read(self) -> Iterator[Placed]:
        sentence = done = 0
        for number, mention in enumerate(self._mentions):
            while sentence < mention.sentence:
                yield from self._clauses(sentence, done)
                sentence += 1
            start = self._start_of(mention, done)
            yield from self._clauses(sentence, done, start)
            part = self._part(number, start)
            operations, stop = Calls(self._cutter, self._string, part).read()
            if operations:
                done = stop
                words = self._cutter.cut(start, stop)
                yield from ((operation, (start, stop), words) for operation in operations)
            else:
                done = part.stop
                yield from self._clauses(sentence, start, done)
        for number in range(sentence, len(self._sentences)):
            yield from self._clauses(number, done)

    def _clauses(self, sentence: int, start: int, stop: int | None = None) -> list[Placed]:
        """Read the clauses between two positions of a sentence."""
        tokens = [
            token
            for token in self._sentences[sentence]
            if token.start >= start and (stop is None or token.start < stop)
        ]
        while tokens and tokens[0].word == ",":
            del tokens[0]
        is_heading = stop is None and bool(tokens) and tokens[-1].word == ":"
        if is_heading or all(token.word in _CONFIRMS for token in tokens):
            return []
        return read_sentence(self._cutter, tokens)

    def _start_of(self, mention: Mention, done: int) -> int:
        """Return where the order of a call begins: after the clauses before it in its sentence."""
        tokens = self._sentences[mention.sentence]
        first = next(at for at, token in enumerate(tokens) if token.stop > done)
        if tokens[mention.token].start < done:
            return mention.start
        for at in range(mention.token, first, -1):
            starts = at == mention.token or tokens[at].word in _STARTERS
            if starts and tokens[at - 1].word in _JOINTS:
                return tokens[at].start
        if first == 0:
            return tokens[0].start
        return self._start_after_call(mention, tokens, first)

    def _start_after_call(self, mention: Mention, tokens: list[Token], first: int) -> int:
        """Return where an order begins that follows a call in its sentence without a joint."""
        for at in range(mention.token, first, -1):
            before = tokens[at - 1]
            if at != mention.token and tokens[at].word not in _ORDERS:
                continue
            if _SEPARATOR.fullmatch(before.word) is not None:
                return before.start
            if before.word in _JOINTS:
                return tokens[at].start
        at = mention.token
        while at > first and tokens[at - 1].word in _BEFORE_NAMES:
            at -= 1
        return max(tokens[at].start, mention.start if at == mention.token else 0)

    def _part(self, number: int, start: int) -> Part:
        mention = self._mentions[number]
        following = self._mentions[number + 1] if number + 1 < len(self._mentions) else None
        head = self._string[start : mention.start]
        asked = (
            following is not None and following.tool == mention.tool,
            _asks(head),
            _starts(head),
        )
        last = mention.sentence
        while (
            last + 1 < len(self._sentences) and self._sentences[last + 1][0].start < mention.group
        ):
            last += 1
        if following is not None and following.sentence <= last:
            stop = self._start_of(following, mention.group)
            return Part(mention, start, stop, stop, *asked)
        stop = end = max(self._sentences[last][-1].stop, mention.group)
        for at in range(
            last + 1, len(self._sentences) if following is None else following.sentence
        ):
            tokens = self._sentences[at]
            first, after = tokens[0].start, tokens[-1].stop
            pair = next(find_pairs(mention.tool, self._string, first, after), None)
            if pair is None and read_sentence(self._cutter, tokens):
                break
            end = after
        return Part(mention, start, stop, end, *asked)


def _last_condition(tokens: list[Token]) -> int:
    """Return where the last `if` or `unless` stands: no call before it is an order."""
    found = (at for at in reversed(range(len(tokens))) if tokens[at].word in ("if", "unless"))
    return next(found, -1)


def _is_description(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].word in _DESCRIPTIONS


def _is_list_item(tokens: list[Token], at: int) -> bool:
    """Tell whether a quoted call stands for itself: after a verb, a colon or a list mark."""
    before = tokens[at - 1].word if at else ""
    return before in _STARTERS or not before[-1:].isalnum()


def _asks(head: str) -> bool:
    """Tell whether the words before a tool's name ask for the call."""
    mark = _SEPARATOR.match(head)
    for piece in _PIECE.split(head[mark.end() :] if mark else head):
        words = [lower(word) for word in _WORD.findall(piece)]
        if words[-2:] == ["must", "be"]:
            return True
        while words and (words[0] in _OPENINGS or words[0].isdecimal()):
            del words[0]
        if words and words[0] in _ORDERS:
            return True
    return not words


def _starts(head: str) -> bool:
    """Tell whether a verb such as `call` stands before a tool's name."""
    return not _STARTERS.isdisjoint(map(lower, _WORD.findall(head)))
