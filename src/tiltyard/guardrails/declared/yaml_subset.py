"""Read the YAML that servers print: blocks of lists and mappings with scalars.

Servers print records with a library, which quotes what people wrote. So a text inside a record
cannot pose as another record. Everything that a library does not print, such as anchors and tags,
is no YAML here.
"""

import re
from typing import Any, Final

_KEY: Final = re.compile(
    r"""(?P<name>[A-Za-z_][\w .$/-]{0,60}|'(?:[^']|'')*'|"[^"\\]*"|\d+)[ ]*:(?:[ ]+|$)"""
)
_ITEM: Final = re.compile(r"-(?:[ ]+|$)")
_LITERAL: Final = re.compile(r"[|>][+-]?\d?[+-]?$")
_ESCAPE: Final = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n[ ]*|.)", re.DOTALL
)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "e": "\x1b", "_": "\u00a0"}
_ODD: Final = ("&", "*", "!", "%", "@", "`", "|", ">", "{", "[")
"""A plain scalar begins with none of these."""
_CONSTANTS: Final[dict[str, Any]] = {
    "null": None,
    "~": None,
    "": None,
    "true": True,
    "false": False,
}
_MARKS: Final = {"'": re.compile("''|'"), '"': re.compile(r'\\.|"')}
"""Quotes, and what stands for a quote inside of them."""
_FOLD: Final = re.compile(r"(?<!\\)\n(\n*)")
_MAX_DEPTH: Final = 12


class _NotYamlError(Exception):
    pass


def read_yaml(text: str) -> Any:
    """Return the lists and mappings of a text, or None if it is something else."""
    lines = text.expandtabs().rstrip().split("\n")
    if lines and lines[0].strip() == "---":
        lines = lines[1:]
    reader = _Reader(lines)
    try:
        data = reader.block(0, 0)
    except _NotYamlError:
        return None
    return data if isinstance(data, list | dict) and reader.is_done else None


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._columns = [len(line) - len(line.lstrip()) if line.strip() else -1 for line in lines]
        """Where each line begins; -1 for a blank one."""
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._column() < 0

    def block(self, indent: int, depth: int) -> Any:
        """Read the list or the mapping whose lines begin at a column."""
        if depth > _MAX_DEPTH:
            raise _NotYamlError
        if self._column() != indent:
            raise _NotYamlError
        if _ITEM.match(self._lines[self._at], indent):
            return self._list(indent, depth)
        return self._mapping(indent, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self._column() == indent:
            item = _ITEM.match(self._lines[self._at], indent)
            if item is None:
                break
            rest = self._lines[self._at][item.end() :]
            if rest and (_KEY.match(rest) or _ITEM.match(rest)):
                # The first key of a mapping stands behind the dash.
                column = item.end()
                self._lines[self._at] = " " * column + rest
                self._columns[self._at] = column
                found.append(self.block(column, depth + 1))
            else:
                found.append(self._value(rest, indent, depth))
        return found

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._column() == indent:
            line = self._lines[self._at]
            key = _KEY.match(line, indent)
            if key is None:
                raise _NotYamlError
            name = key["name"].strip("'\"").strip()
            if name in found:
                raise _NotYamlError
            found[name] = self._value(line[key.end() :], indent, depth)
        if not found:
            raise _NotYamlError
        return found

    def _value(self, rest: str, indent: int, depth: int) -> Any:
        """Read what follows a key or a dash: a scalar, or a block on the next lines."""
        self._at += 1
        rest = rest.strip()
        if rest == "":
            column = self._column()
            listed = column == indent and _ITEM.match(self._lines[self._at], indent)
            if column > indent or (listed and self._follows_key(indent)):
                return self.block(column, depth + 1)
            return None
        if _LITERAL.match(rest):
            return self._literal(indent)
        if rest[0] in "'\"":
            return self._quoted(rest, rest[0])
        if rest in ("[]", "{}"):
            return [] if rest == "[]" else {}
        if rest[0] == "[" and rest[-1] == "]":
            return [_plain(part) for part in rest[1:-1].split(",")]
        if rest.startswith(_ODD):
            raise _NotYamlError
        more = self._deeper(indent)
        return _plain(" ".join([rest, *more]) if more else rest)

    def _follows_key(self, indent: int) -> bool:
        """Return whether the line before is a key, whose list may stand at its own column."""
        return _ITEM.match(self._lines[self._at - 1], indent) is None

    def _deeper(self, indent: int) -> list[str]:
        """Take the lines that continue a scalar."""
        found: list[str] = []
        while self._at < len(self._lines):
            if 0 <= self._columns[self._at] <= indent:
                break
            found.append(self._lines[self._at].strip())
            self._at += 1
        while found and not found[-1]:
            found.pop()
        return found

    def _literal(self, indent: int) -> str:
        return "\n".join(self._deeper(indent))

    def _quoted(self, rest: str, mark: str) -> str:
        """Read a scalar in quotes, which may go over several lines."""
        lines = [rest[1:]]
        while not _closes(lines[-1], mark):
            if self._at >= len(self._lines):
                raise _NotYamlError
            lines.append(self._lines[self._at].strip())
            self._at += 1
        body = "\n".join(lines).rstrip()[:-1]
        if mark == "'":
            return _folded(body.replace("''", "'"))
        return _ESCAPE.sub(_unescaped, _folded(body))

    def _column(self) -> int:
        """Return where the next line begins that is not blank; -1 at the end."""
        columns, at, end = self._columns, self._at, len(self._columns)
        while at < end and columns[at] < 0:
            at += 1
        self._at = at
        return columns[at] if at < end else -1


def _closes(line: str, mark: str) -> bool:
    """Return whether a scalar in quotes ends in a line. Nothing may follow its last quote."""
    for found in _MARKS[mark].finditer(line):
        if found[0] == mark:
            if line[found.end() :].strip():
                raise _NotYamlError
            return True
    return False


def _folded(text: str) -> str:
    """Join lines: a line break is a space, and a blank line is a line break."""
    return _FOLD.sub(lambda found: found[1] or " ", text) if "\n" in text else text


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU":
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if code[0] == "\n":
        return ""
    return _NAMED.get(code, code)


def _plain(text: str) -> Any:
    text = text.strip().strip("'\"")
    low = text.casefold()
    if low in _CONSTANTS:
        return _CONSTANTS[low]
    return text
