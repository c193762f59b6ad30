"""Split a large JSON file into the items of one of its lists, without holding the file."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from tiltyard.bridges.traces.errors import BadFileError
from tiltyard.bridges.traces.streams import MAX_LINE_BYTES

_TOKEN: Final = re.compile(rb'["{}\[\],]')
_INSIDE: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_QUOTE: Final = 0x22
_OPENING: Final = b"{["
_CLOSING: Final = b"}]"


def items_of(read: Callable[[], bytes], key: str) -> Iterator[bytes | None]:
    """Yield the items of the list under `key` of the outer object, as JSON.

    If the outer value is a list, yield its items. None stands for an item that is too long. `read`
    returns the next piece of the file, and nothing at its end.
    """
    return _Splitter(read, key.encode()).split()


class _Splitter:
    """Follows brackets and strings, and keeps the text of one item at a time."""

    def __init__(self, read: Callable[[], bytes], key: bytes) -> None:
        self._read = read
        self._key = key
        self._data = b""
        self._at = 0
        self._depth = 0
        self._kept = bytearray()
        self._keeping = False
        self._overlong = False
        self._last_string = b""
        self._item_depth = 0
        """The depth of the wanted list's items; 0 before the list begins."""

    def split(self) -> Iterator[bytes | None]:
        while self._fill():
            found = _TOKEN.search(self._data, self._at)
            if found is None:
                self._keep(len(self._data))
                continue
            token = found[0]
            if token == b'"':
                self._keep(found.end())
                self._pass_string()
            elif token in _OPENING:
                self._keep(found.end())
                self._open(token)
            elif token == b"," and self._is_between_items():
                yield from self._finish(found.start(), found.end())
            elif token in _CLOSING:
                if self._is_between_items():
                    yield from self._finish(found.start(), found.end())
                    self._item_depth, self._keeping = 0, False
                    self._depth -= 1
                else:
                    self._keep(found.end())
                    self._depth -= 1
            else:
                self._keep(found.end())
        if self._item_depth or self._depth > 0:
            raise BadFileError("the file ends in the middle of a value")

    def _fill(self) -> bool:
        if self._at < len(self._data):
            return True
        self._data, self._at = self._read(), 0
        return bool(self._data)

    def _keep(self, end: int) -> None:
        """Move to `end`, and keep the text on the way if it belongs to an item."""
        if self._keeping and not self._overlong:
            self._kept += self._data[self._at : end]
            if len(self._kept) > MAX_LINE_BYTES:
                self._overlong = True
                self._kept.clear()
        self._at = end

    def _pass_string(self) -> None:
        """Move behind the end of a string. Remember it: it may be the key of the list."""
        while len(self._data) - self._at <= len(self._key):
            more = self._read()
            if not more:
                break
            self._data, self._at = self._data[self._at :] + more, 0
        named = self._data.startswith(self._key + b'"', self._at)
        self._last_string = self._key if named else b""
        while self._fill():
            inside = _INSIDE.match(self._data, self._at)
            assert inside is not None
            self._keep(inside.end())
            if self._at < len(self._data):
                is_end = self._data[self._at] == _QUOTE
                self._keep(self._at + 1)
                if is_end:
                    return
                # The piece ends with a backslash: the next character has no meaning.
                if self._fill():
                    self._keep(self._at + 1)
        raise BadFileError("the file ends in the middle of a string")

    def _open(self, token: bytes) -> None:
        self._depth += 1
        if token != b"[" or self._item_depth:
            return
        is_outer = self._depth == 1
        is_named = self._depth == 2 and self._last_string == self._key
        if is_outer or is_named:
            self._item_depth, self._keeping = self._depth, True

    def _is_between_items(self) -> bool:
        return self._item_depth > 0 and self._depth == self._item_depth

    def _finish(self, end: int, after: int) -> Iterator[bytes | None]:
        self._keep(end)
        kept, overlong = bytes(self._kept), self._overlong
        self._kept.clear()
        self._overlong = False
        self._at = after
        if overlong:
            yield None
        elif kept.strip():
            yield kept
