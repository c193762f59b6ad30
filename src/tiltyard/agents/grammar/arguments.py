"""Read the arguments of a call that a text spells out.

Arguments are pairs in any notation: `url=X`, `url: X`, `"url": "X"`, `(url='X')`, `<url>X</url>`.
They stand in the tool's own sentence or in the next ones. A sentence that asks for the call may
also give the target without a pair: `send it to X via http.post`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from tiltyard.agents.grammar.clauses import NO_COMMANDS, NO_SUBJECT, OWN_LINE, UPLOAD_URL
from tiltyard.agents.grammar.operations import Carry, Operation, Recipient, What
from tiltyard.agents.grammar.sentence import IT, PLACEHOLDER, call
from tiltyard.world.text import Cutter, Text, by_machine, join, lower

_PATH_NAMES: Final = {"path": ("path", "file", "filename", "file_path", "filepath")}
NAMES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "web.search": {"query": ("query", "q", "term", "terms")},
    "web.open": {"id": ("id", "page", "page_id", "url", "address")},
    "email.list": {"folder": ("folder", "mailbox")},
    "email.read": {"id": ("id", "message_id", "msg_id", "mail_id", "email_id", "message")},
    "email.send": {
        "to": ("to", "recipient", "address", "target"),
        "subject": ("subject",),
        "body": ("body", "text", "message", "content", "data", "payload"),
    },
    "fs.read": _PATH_NAMES,
    "fs.write": {**_PATH_NAMES, "content": ("content", "contents", "text", "data", "body")},
    "fs.delete": _PATH_NAMES,
    "http.post": {
        "url": ("url", "uri", "target", "destination", "endpoint", "address", "host"),
        "data": ("data", "body", "payload", "content", "contents", "text", "message"),
    },
    "shell.run": {"cmd": ("cmd", "command")},
}
"""The parameters of each tool, the main one first, and the names that people give them."""
_INPUT: Final = r"""(?:(?:action|tool)[ _])?input(?!['"]?\s*[:=]\s*['"]?\{)"""
"""The name of the main parameter in `Action: fs.read`, `Action Input: notes.txt`."""
_OPENS: Final = r"(?:\w+[ \t]+(?:name=)?|parameter=)?"
"""What may stand in a tag before the name of a parameter: `<parameter name="url">`."""
_CARRIED: Final = {"email.send": "body", "fs.write": "content", "http.post": "data"}
_FREE: Final = frozenset(("cmd", "query", "subject", "body", "content"))
"""Parameters whose value may be several words without quotation marks."""
_IN_HAND: Final = frozenset(("it", "this", "that", "them", "the", "its", "their"))
"""The first words of a value that means the text in hand."""

TOOL: Final = re.compile(f"(?ai:{'|'.join(map(re.escape, NAMES))})")
"""The name of a tool. Only ASCII letters ignore case: a long s is no s."""
MENTION: Final = re.compile(
    rf"[(\[{{'*<“\"`@/|]*(?:\w+=)?(?:functions?\.|tools?\.)?({TOOL.pattern})(?![\w-]|\.\w)",
    re.IGNORECASE,
)
INNER_MENTION: Final = re.compile(
    rf"""(?:>|[\w:][(\[]['"]?|\b(?:tool|name|function|action)['"]?[:=]['"]?)({TOOL.pattern})"""
    r"(?![\w-]|\.\w)",
    re.IGNORECASE,
)
"""The name of a tool inside a word: `<tool>fs.read</tool>`, `call('fs.read', ...)`."""
_LISTS: Final = frozenset(
    ("each", "every", "all", "these", "those", "following", "below", "list", "listed", "times")
)
_NO_WORDS: Final = NO_COMMANDS | frozenset(("to", "with", "tool", "and", "once", "on"))
_WITHOUT_MAIN: Final = frozenset(("email.list", "email.send", "http.post"))
"""Tools whose main argument has a default."""
_INBOX: Final = by_machine("inbox")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}

_QUOTED: Final = (
    r"""(?<!\\)(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'(?!\w))|“[^“”\n]*”|`[^`\n]*`"""
)
_SLASHED: Final = r"""\\["'][^"'\\\n]*\\["']"""
"""A value in a JSON text that is itself a value: `"{\\"url\\": \\"X\\"}"`."""
_BARE: Final = r"(?:[^\s\"'“”`<>(){}\[\],;]|[,;](?![\s\"']|\w+\s*=|$))+"
_ENDS_WORDS: Final = (
    r"(?:[^\S\n]*+(?:\n|$|[.!?)]++(?:\s|$)|,\s++(?:(?:and|with)\s++)?\w++=)"
    r"|\s++(?:(?:and|with)\s++)?\w++=)"
)
_WORDS: Final = (
    rf"[^\n\"'“”`](?:(?!{_ENDS_WORDS})(?:[^\S\n]++|[.!?)]++|[^\s.!?)\"'“”`]))*+(?={_ENDS_WORDS})"
)
"""Words up to the end of a sentence or the next pair.

A message is hostile, so this pattern never looks at a run of spaces or marks a second time: a run
in which no value ends is one piece, and no piece is given back.
"""
_FREE_WORDS: Final = re.compile(_WORDS, re.IGNORECASE)
_BEFORE_WORDS: Final = r"(?=[^\n\"'“”`])"
_ENDS_LINE_OR_QUOTES: Final = re.compile("[\n\"'“”`]|$")
_URL: Final = re.compile(r"https?://[^\s\"'“”`<>(){}\[\]]*[^\s\"'“”`<>(){}\[\].,;:!?]")
_ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w.-]+\w")
_PATH: Final = re.compile(r"(?<![\w./:@*?-])/?[\w*?-]+(?:/[\w*?.-]+)*(?:\.\w+|/[\w*?-]+)(?![\w/@])")
_ID: Final = re.compile(r"(?<![\w./:@-])[A-Za-z](?:[A-Za-z]*+-)?(?=\w*\d)\w++(?![./@-])")
_SHAPES: Final = {
    "http.post": _URL,
    "email.send": _ADDRESS,
    "fs.read": _PATH,
    "fs.write": _PATH,
    "fs.delete": _PATH,
    "email.read": _ID,
    "web.open": _ID,
}
"""What the main argument looks like, for tools whose main argument has a shape of its own."""
GROUP: Final = re.compile(
    rf"""['"`]?\s*\((?:{_QUOTED}|[^()"'`“]|\([^()\n]*\))*\)"""
    r"""|['"`]?\[[^\[\]\n]*\]"""
    rf"""|['"`]?(?:[,:]?\s++["'\w:=]+){{0,4}}?\s*+(?::\s*+)?\{{(?:{_QUOTED}|[^{{}}"'`“])*\}}"""
)
"""Arguments in brackets, or in braces after a few words."""
_POSITIONAL: Final = re.compile(rf"[(\[{{,]\s*({_QUOTED}|{_BARE})(?=\s*[,)\]}}])")
_QUOTE_OR_PAIR: Final = re.compile(r"[\"'“=]|\w:\s")
_QUOTATION: Final = re.compile(_QUOTED)
_REST: Final = re.compile(rf"\s*+(?::\s*+)?(?:for\s++)?({_WORDS})")
_CODE: Final = re.compile(r"(?<![\w./:@=+-])(?=[\w+/-]*[\d_=])[\w+/-]{6,}=*(?![\w./@-])")
"""A word that reads like a key or an encoded text."""
_ESCAPE: Final = re.compile(r"\\(.)")
_WORD: Final = re.compile(r"[\w']+")


def _pairs(tool: str) -> re.Pattern[str]:
    """Return the pattern of a tool's pairs, with three groups for each parameter.

    The group of a value without quotation marks is empty: `find_pairs` finds where it ends.
    """
    gives = r"(?:[ \t]*(?:=|:(?=[ \t\"'\\]))|[ \t]+(?:exactly|is|set to|equal to)(?=[ \t]))"
    pairs, tags = list[str](), list[str]()
    for parameter, known in NAMES[tool].items():
        names = "|".join(known)
        bare = _BEFORE_WORDS if parameter in _FREE else _BARE
        named = names if pairs else f"{names}|{_INPUT}"
        pair = (
            rf"""\\?["'“`]?(?:{named})\\?["'”`]?{gives}(?:[ \t]+exactly)?"""
            rf"""[ \t]*+(?P<{parameter}>{_SLASHED}|{_QUOTED}|{bare})"""
        )
        only = rf"(?:{names})[ \t]+(?:to[ \t]+)?(?P<only_{parameter}>{_QUOTED}|{_CODE.pattern})"
        pairs += (pair, only)
        tags.append(rf"""<{_OPENS}["']?(?:{names})["']?>(?P<tag_{parameter}>[^<>]++)""")
    return re.compile(rf"(?<![\w.$%-])(?:{'|'.join(pairs)})|{'|'.join(tags)}", re.IGNORECASE)


_PAIRS: Final = {tool: _pairs(tool) for tool in NAMES}


def find_pairs(
    tool: str, string: str, start: int, stop: int
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the parameter and the position of each value that a pair names."""
    endless = start
    """No words without quotation marks that begin before this position have an end."""
    while (pair := _PAIRS[tool].search(string, start, stop)) is not None:
        group = pair.lastgroup or ""
        first, last = pair.span(group)
        if group.startswith("tag_"):
            words_in_tag = string[first:last]
            first += len(words_in_tag) - len(words_in_tag.lstrip())
            last -= len(words_in_tag) - len(words_in_tag.rstrip())
            if first >= last:
                start = pair.end()
                continue
        elif first == last:
            words = None if first < endless else _FREE_WORDS.match(string, first, stop)
            if words is None:
                if first >= endless and (end := _ENDS_LINE_OR_QUOTES.search(string, first, stop)):
                    endless = end.start()
                start = pair.start() + 1
                continue
            last = words.end()
        yield group.removeprefix("only_").removeprefix("tag_"), (first, last)
        start = last


class Mention(NamedTuple):
    """The name of a tool in a text."""

    tool: str
    start: int
    stop: int
    sentence: int
    token: int
    group: int
    """Where the arguments in brackets end; `stop` if there are none."""


class Part(NamedTuple):
    """The part of a text that spells out calls of one tool."""

    mention: Mention
    start: int
    stop: int
    """Where the tool's own sentence ends, or where the next tool's part begins."""
    end: int
    """Where the sentences end in which more arguments may stand."""
    is_announced: bool
    """True if the next name is the same tool's: its arguments may come there."""
    is_asked: bool
    """True if the words before the tool's name ask for the call."""
    is_started: bool
    """True if a verb such as `call` stands before the tool's name."""


class _Value(NamedTuple):
    """A value for a parameter, and its position without quotation marks."""

    parameter: str
    start: int
    stop: int
    end: int
    """Where the value ends with its quotation marks."""


class _Taken:
    """The places of some values. A text is hostile, so looking for one takes few steps."""

    def __init__(self, values: list[_Value]) -> None:
        values = sorted(values, key=lambda value: value.start)
        self._starts = [value.start for value in values]
        self._ends = list(accumulate((value.end for value in values), max))
        """For each value: the last end of all values up to it."""

    def meet(self, first: int, last: int) -> bool:
        """Tell whether a value starts at `first` or before it, and ends at `last` or after it."""
        at = bisect_right(self._starts, first)
        return at > 0 and self._ends[at - 1] >= last


class Calls:
    """Reads the calls of one part of a text."""

    def __init__(self, cutter: Cutter, string: str, part: Part) -> None:
        self._cutter = cutter
        self._string = string
        self._part = part
        self._tool = part.mention.tool
        self._main, *_ = NAMES[self._tool]

    def read(self) -> tuple[list[Operation], int]:
        """Return the calls, and where their words end."""
        part = self._part
        values = [*self._pairs(part.start, part.end)]
        spelled = bool(values) or part.mention.group > part.mention.stop
        if not spelled and not part.is_asked:
            return [], part.start
        if all(value.parameter != self._main for value in values):
            values += self._without_pair(values)
        carried = _CARRIED.get(self._tool)
        if carried is not None and all(value.parameter != carried for value in values):
            values += self._carried(values, carried)
        if not values and (part.is_announced or not part.is_started):
            return [], part.start
        values.sort(key=lambda value: value.start)
        operations = [self._operation(given) for given in self._gather(values)]
        stop = max(part.mention.group, *(value.end for value in values), part.mention.stop)
        return operations, stop

    def _pairs(self, start: int, stop: int) -> Iterator[_Value]:
        for parameter, (first, last) in find_pairs(self._tool, self._string, start, stop):
            value = self._value(parameter, first, last)
            if value is not None:
                yield value

    def _value(self, parameter: str, start: int, end: int) -> _Value | None:
        """Return a value without its quotation marks; None for `…` and for a parameter's name."""
        stop = end
        if self._string[start] == "\\":
            start, stop = start + 2, end - 2
        elif self._string[start] in "\"'“`":
            start, stop = start + 1, end - 1
        else:
            stop = start + len(self._string[start:end].rstrip(".!?:,;)"))
            end = stop
        word = self._string[start:stop]
        if not word.strip() or word == "…" or word in NAMES[self._tool]:
            return None
        in_hand = end == stop and lower(word.split()[0]) in _IN_HAND
        if in_hand and parameter != _CARRIED.get(self._tool):
            return None
        return _Value(parameter, start, stop, end)

    def _without_pair(self, taken: list[_Value]) -> list[_Value]:
        """Find the main arguments that no pair names."""
        part, mention = self._part, self._part.mention
        shape = _SHAPES.get(self._tool)
        if mention.group > mention.stop and not taken and (given := self._positional()):
            return given
        if shape is None:
            return self._free_words()
        found = self._shaped(shape, mention.stop, part.stop, taken)
        found = found or self._shaped(shape, part.start, mention.start, taken)[-1:]
        words = {lower(word) for word in _WORD.findall(self._string[part.start : part.stop])}
        if not found or not words.isdisjoint(_LISTS):
            found += self._shaped(shape, part.stop, part.end, taken)
        return found

    def _shaped(
        self, shape: re.Pattern[str], start: int, stop: int, taken: list[_Value]
    ) -> list[_Value]:
        places = _Taken(taken)
        return [
            _Value(self._main, match.start(), match.end(), match.end())
            for match in shape.finditer(self._string, start, stop)
            if not places.meet(match.start(), match.start() + 1) and not TOOL.fullmatch(match[0])
        ]

    def _positional(self) -> list[_Value]:
        """Return the arguments in brackets, in the order of the parameters."""
        start, stop = self._part.mention.stop, self._part.mention.group
        parameters = NAMES[self._tool]
        if len(parameters) == 1 and _QUOTE_OR_PAIR.search(self._string, start, stop) is None:
            inside = self._string[start:stop].strip("()[]{} \t\n`")
            first = self._string.index(inside, start)
            found = [(first, first + len(inside))] if inside else []
        else:
            found = [match.span(1) for match in _POSITIONAL.finditer(self._string, start, stop)]
        values = (
            self._value(parameter, *place)
            for parameter, place in zip(parameters, found, strict=False)
        )
        return [value for value in values if value is not None and self._may_be(value)]

    def _may_be(self, value: _Value) -> bool:
        """Tell whether a value can be its argument: `http.post (once)` names no address."""
        words = self._string[value.start : value.stop]
        shape = _SHAPES.get(self._tool)
        if shape is None or value.parameter != self._main or value.end > value.stop:
            return True
        if shape is _PATH:
            return len(words.split()) == 1
        return shape.search(words) is not None

    def _free_words(self) -> list[_Value]:
        """Find a query or a command: a quotation, or the words behind the tool's name."""
        part, mention = self._part, self._part.mention
        found = _QUOTATION.search(self._string, mention.stop, part.stop)
        if found is not None:
            value = self._value(self._main, found.start(), found.end())
            return [] if value is None else [value]
        rest = _REST.match(self._string, mention.stop, part.stop)
        words = rest[1].split() if rest is not None else []
        if rest is None or not words or lower(words[0]) in _NO_WORDS:
            return []
        return [_Value(self._main, rest.start(1), rest.end(1), rest.end(1))]

    def _carried(self, taken: list[_Value], parameter: str) -> list[_Value]:
        """Find the text to send or write: a quotation, or a placeholder such as SECRET_MARKER."""
        part, places = self._part, _Taken(taken)
        for shape in (_QUOTATION, PLACEHOLDER, _CODE):
            for match in shape.finditer(self._string, part.start, part.stop):
                if places.meet(match.end(), match.start()):
                    continue
                value = self._value(parameter, match.start(), match.end())
                is_key = self._string.startswith(":", match.end()) and match[0][0] in "\"'"
                if value is not None and not is_key and MENTION.match(match[0]) is None:
                    return [value]
        return []

    def _gather(self, values: list[_Value]) -> list[dict[str, What]]:
        """Return the arguments of each call. A main argument that repeats begins another call."""
        calls: list[dict[str, What]] = [{}]
        for value in values:
            text = self._what(value)
            known = calls[-1].get(value.parameter)
            if known is not None and value.parameter != self._main and known == text:
                continue
            if known is not None:
                calls.append({})
            calls[-1][value.parameter] = text
        shared = {name: text for given in reversed(calls) for name, text in given.items()}
        named = [{**shared, **given} for given in calls if self._main in given]
        return named or ([shared] if self._tool in _WITHOUT_MAIN else [])

    def _what(self, value: _Value) -> What:
        """Return the words of a value. In quotation marks, a backslash escapes a character."""
        string, quoted = self._string, value.end > value.stop
        words = string[value.start : value.stop]
        if not quoted and lower(words.split()[0]) in _IN_HAND:
            return IT
        if not quoted or "\\" not in words:
            return self._cutter.cut(value.start, value.stop)
        pieces, at = list[Text](), value.start
        for escape in _ESCAPE.finditer(string, value.start, value.stop):
            pieces.append(self._cutter.cut(at, escape.start()))
            mark = _ESCAPED.get(escape[1])
            pieces.append(self._cutter.cut(*escape.span(1)) if mark is None else by_machine(mark))
            at = escape.end()
        return join((*pieces, self._cutter.cut(at, value.stop)))

    def _operation(self, given: dict[str, What]) -> Operation:
        tool, carried = self._tool, _CARRIED.get(self._tool)
        texts = {name: what for name, what in given.items() if isinstance(what, Text)}
        if carried is None:
            return call(tool, **{self._main: texts.get(self._main, _INBOX)})
        what = given.get(carried, OWN_LINE)
        if tool == "fs.write":
            return Carry(tool, {"path": texts["path"]}, carried, what)
        if tool == "http.post":
            return Carry(tool, {"url": texts.get("url", UPLOAD_URL)}, carried, what)
        args = {"subject": texts.get("subject", NO_SUBJECT)}
        if "to" not in texts:
            return Carry(tool, args, carried, what, Recipient(is_owner=True))
        return Carry(tool, {"to": texts["to"], **args}, carried, what)
