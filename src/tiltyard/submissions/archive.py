"""Reads zip archives strictly, in memory.

Python's `zipfile` reads unusual archives as well as it can. This module refuses them.
"""

import stat
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tiltyard.submissions.names import (
    Limits,
    Names,
    SubmissionError,
    is_left_out,
    show,
    too_large,
    too_many,
    too_much,
    utf8,
)

_END: Final = struct.Struct("<4s4H2LH")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_DESCRIPTOR: Final = struct.Struct("<3L")
_ZIP64_LOCATOR: Final = b"PK\6\7"
_ZIP64_LOCATOR_BYTES: Final = 20
_MAX_COMMENT_BYTES: Final = 0xFFFF
_NEWEST_FORMAT: Final = 63

_ENCRYPTED: Final = 1 << 0 | 1 << 6 | 1 << 13
_SIZES_FOLLOW: Final = 1 << 3
_HARMLESS: Final = 1 << 1 | 1 << 2 | 1 << 11
"""The compression effort, and that names are UTF-8, which is required anyway."""

_STORED: Final = 0
_DEFLATED: Final = 8
_METHODS: Final = {1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "LZMA", 93: "zstd"}

_ZIP64_EXTRA: Final = 0x0001
_UNICODE_PATH_EXTRA: Final = 0x7075
_AES_EXTRA: Final = 0x9901

_DOS_SPECIAL: Final = 0x08
_DOS_DIRECTORY: Final = 0x10


class _Entry(Struct, frozen=True):
    """An entry of the central directory."""

    path: str
    is_directory: bool
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


class Archive:
    """A zip archive in the simplest form of the format.

    Programs read unusual archives in different ways, so only this form is accepted: the entries
    follow each other from the first byte, then comes the central directory, then its end record.
    Every byte belongs to exactly one of them. Where the format repeats a value, both must be equal.
    """

    def __init__(self, data: bytes, shown: str, limits: Limits) -> None:
        self._data = data
        self._shown = shown
        self._limits = limits

    def read(self) -> dict[str, bytes]:
        start, end, count = self._central_directory()
        entries = list(self._entries(start, end, count))
        self._check_sizes(entries)
        by_offset = sorted(entries, key=lambda entry: entry.offset)
        first, *ends = [entry.offset for entry in by_offset] + [start]
        if first != 0:
            raise self._odd("there are bytes before the first entry")
        found = {
            entry.path: self._extract(entry, its_end)
            for entry, its_end in zip(by_offset, ends, strict=True)
        }
        return {
            entry.path: found[entry.path]
            for entry in entries
            if not entry.is_directory and not is_left_out(entry.path)
        }

    def _central_directory(self) -> tuple[int, int, int]:
        """Return the start and the end of the central directory, and its number of entries."""
        data = self._data
        last = len(data) - _END.size
        found = []
        for at in range(last, max(last - _MAX_COMMENT_BYTES, 0) - 1, -1):
            if data.startswith(b"PK\5\6", at):
                fields = _END.unpack_from(data, at)
                if fields[-1] == last - at:
                    found.append((at, fields))
        if not found:
            raise self._odd("it is not a zip archive, or it is cut off, or bytes follow its end")
        if len(found) > 1:
            raise self._odd("it has two end records")
        end, (_, disk, first_disk, here, count, size, start, _) = found[0]
        zip64 = data[max(end - _ZIP64_LOCATOR_BYTES, 0) :].startswith(_ZIP64_LOCATOR)
        if zip64 or 0xFFFF in (disk, first_disk, here, count) or 0xFFFFFFFF in (size, start):
            raise self._zip64()
        if disk or first_disk or here != count:
            raise self._odd("it is only one part of a split archive")
        if start + size != end:
            raise self._odd("its central directory is in the wrong place, or bytes were added")
        return start, end, count

    def _entries(self, start: int, end: int, count: int) -> Iterator[_Entry]:
        if count > 2 * self._limits.files:
            raise too_many(self._limits)
        names = Names(self._limits)
        at = start
        for _ in range(count):
            if at + _CENTRAL.size > end or self._data[at : at + 4] != b"PK\1\2":
                raise self._odd("its central directory is damaged")
            fields = _CENTRAL.unpack_from(self._data, at)
            name_at = at + _CENTRAL.size
            extra_at = name_at + fields[10]
            at = extra_at + fields[11] + fields[12]
            if at > end:
                raise self._odd("its central directory is damaged")
            raw, extra = self._data[name_at:extra_at], self._data[extra_at : at - fields[12]]
            entry = self._entry(fields, raw, extra)
            names.add(entry.path, is_directory=entry.is_directory)
            yield entry
        if at != end:
            raise self._odd("its central directory has more entries than it declares")

    def _entry(self, fields: tuple[Any, ...], raw: bytes, extra: bytes) -> _Entry:
        _, _, needs, flags, method, _, _, crc, packed, size, _, _, _, disk, _, mode, offset = fields
        name = utf8(raw)
        shown = show(name)
        self._check_extra(extra, raw, shown)
        if 0xFFFFFFFF in (packed, size, offset) or disk == 0xFFFF:
            raise self._zip64()
        if disk:
            raise self._odd("it is only one part of a split archive")
        if needs & 0xFF > _NEWEST_FORMAT:
            raise self._odd(f"{shown} needs a newer version of the zip format")
        if flags & _ENCRYPTED:
            raise self._encrypted(shown)
        if flags & ~(_SIZES_FOLLOW | _HARMLESS):
            raise self._odd(f"{shown} is packed in an unusual way (flags {flags:#06x})")
        if method not in (_STORED, _DEFLATED):
            how = _METHODS.get(method, f"method {method}")
            raise self._odd(f"{shown} is packed with {how}; only deflate is allowed")
        is_directory = name.endswith("/")
        self._check_mode(mode, shown, is_directory=is_directory)
        if is_directory and size:
            raise self._odd(f"{shown} is a directory with content")
        # Remove one slash only: `Names` finds everything else that is wrong with a name.
        path = name[:-1] if is_directory and name != "/" else name
        return _Entry(path, is_directory, raw, flags, method, crc, packed, size, offset)

    def _check_mode(self, mode: int, shown: str, *, is_directory: bool) -> None:
        kind = stat.S_IFMT(mode >> 16)
        if kind == stat.S_IFLNK:
            raise SubmissionError(f"{shown} is a link. Put the file itself in its place.")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or mode & _DOS_SPECIAL:
            raise SubmissionError(f"{shown} is neither a file nor a directory. Leave it out.")
        by_mode = kind == stat.S_IFDIR or bool(mode & _DOS_DIRECTORY)
        if by_mode != is_directory and (by_mode or kind == stat.S_IFREG):
            raise SubmissionError(f"{shown} is a file and a directory. Rename one of them.")

    def _check_extra(self, extra: bytes, raw_name: bytes, shown: str) -> None:
        """Refuse extra fields that would change the meaning of an entry."""
        at = 0
        while at < len(extra):
            if at + 4 > len(extra):
                raise self._odd(f"{shown} has a damaged header")
            tag, size = struct.unpack_from("<2H", extra, at)
            value = extra[at + 4 : at + 4 + size]
            at += 4 + size
            if at > len(extra):
                raise self._odd(f"{shown} has a damaged header")
            if tag == _ZIP64_EXTRA:
                raise self._zip64()
            if tag == _AES_EXTRA:
                raise self._encrypted(shown)
            if tag == _UNICODE_PATH_EXTRA and value[5:] != raw_name:
                raise self._odd(f"{shown} has two names")

    def _check_sizes(self, entries: list[_Entry]) -> None:
        """Refuse entries whose declared size is too large. `_extract` checks the declared sizes."""
        total = 0
        for entry in entries:
            total += entry.size
            if entry.size > self._limits.file_bytes:
                raise too_large(show(entry.path), self._limits.file_bytes)
            if total > self._limits.total_bytes:
                raise too_much(show(entry.path), self._limits)
            self._check_ratio(entry.size, entry.packed, show(entry.path))
        self._check_ratio(total, len(self._data), self._shown)

    def _check_ratio(self, size: int, packed: int, shown: str) -> None:
        if size > self._limits.ratio_from_bytes and size > self._limits.ratio * packed:
            raise SubmissionError(
                f"{shown} is more than {self._limits.ratio} times its packed size. "
                "Compute such content, or submit a directory."
            )

    def _extract(self, entry: _Entry, end: int) -> bytes:
        """Return the content of an entry, whose record must end at `end`."""
        shown = show(entry.path)
        packed = self._record(entry, end, shown)
        content = packed if entry.method == _STORED else self._inflate(entry, packed, shown)
        if len(content) != entry.size:
            raise self._odd(f"{shown} has another length than declared")
        if zlib.crc32(content) != entry.crc:
            raise self._odd(f"{shown} is damaged (its checksum differs)")
        return content

    def _record(self, entry: _Entry, end: int, shown: str) -> bytes:
        data, at = self._data, entry.offset
        overlap = self._odd(f"{shown} overlaps with what comes after it")
        if at + _LOCAL.size > end:
            raise overlap
        fields = _LOCAL.unpack_from(data, at)
        signature, _, flags, method, _, _, crc, packed, size, name_size, extra_size = fields
        name_at = at + _LOCAL.size
        extra_at = name_at + name_size
        content_at = extra_at + extra_size
        content_end = content_at + entry.packed
        if signature != b"PK\3\4":
            raise self._odd(f"{shown} is not where the central directory says")
        if content_end > end:
            raise overlap
        self._check_extra(data[extra_at:content_at], entry.raw_name, shown)
        follows = bool(flags & _SIZES_FOLLOW)
        sizes = (entry.crc, entry.packed, entry.size)
        local = (flags, method, data[name_at:extra_at])
        if local != (entry.flags, entry.method, entry.raw_name) or (
            (crc, packed, size) != sizes and not (follows and (crc, packed, size) == (0, 0, 0))
        ):
            raise self._odd(f"{shown} has two headers that contradict each other")
        descriptor = _DESCRIPTOR.pack(*sizes)
        allowed = (descriptor, b"PK\7\x08" + descriptor) if follows else (b"",)
        if data[content_end:end] not in allowed:
            raise self._odd(f"{shown} is followed by bytes that belong to no entry")
        return data[content_at:content_end]

    def _inflate(self, entry: _Entry, packed: bytes, shown: str) -> bytes:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # One byte more than the declared size is enough to refuse the entry.
            content = inflater.decompress(packed, entry.size + 1)
        except zlib.error as error:
            raise self._odd(f"{shown} is damaged") from error
        if len(content) > entry.size:
            raise self._odd(f"{shown} is longer than declared")
        if not inflater.eof or inflater.unused_data:
            raise self._odd(f"{shown} does not end at its declared end")
        return content

    def _odd(self, what: str) -> SubmissionError:
        return SubmissionError(
            f"{self._shown}: {what}. Create the archive again, for example with `zip -r`."
        )

    def _zip64(self) -> SubmissionError:
        return self._odd("it uses zip64, which is for archives larger than any allowed here")

    def _encrypted(self, shown: str) -> SubmissionError:
        return SubmissionError(f"{shown} is encrypted. Make the archive without a password.")
