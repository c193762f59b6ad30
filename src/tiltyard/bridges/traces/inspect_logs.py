"""Logs of Inspect: `.eval` (a zip file with one member a sample) and `.json`."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

from tiltyard.bridges.traces.declared_tools import ToolLists
from tiltyard.bridges.traces.errors import BadFileError, BadRunError
from tiltyard.bridges.traces.messages import read_messages
from tiltyard.bridges.traces.streams import MAX_LINE_BYTES, Source
from tiltyard.bridges.traces.transcript import Transcript, as_list, named, read_labels
from tiltyard.bridges.traces.values import TOO_LONG, made, objects_of, parsed
from tiltyard.studies.recorded import RecordedRun, Skipped

ZIP_START: Final = b"PK"
_SAMPLES: Final = "samples/"
_ATTACHED: Final = "attachment://"
_ZSTANDARD: Final = 93
_LOCAL_SIGNATURE: Final = b"PK\x03\x04"
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_MAX_WINDOW: Final = 1 << 27


def read_inspect(source: Source, tools: ToolLists) -> Iterator[RecordedRun | Skipped]:
    """Read the samples of a log, each of which is a run.

    Labels come from the sample's metadata.
    """

    def make(raw: Mapping[str, Any], place: str) -> RecordedRun:
        return _sample(raw, place, tools)

    if source.head.startswith(ZIP_START):
        for place, text in _members(source):
            yield text if isinstance(text, Skipped) else made(parsed(place, text), make)
    else:
        for one in objects_of(source, "samples"):
            yield made(one, make)


def _members(source: Source) -> Iterator[tuple[str, bytes | Skipped]]:
    """Yield the samples of a zip file. Its directory may lie about sizes."""
    try:
        with zipfile.ZipFile(source.stream) as archive:
            for member in archive.infolist():
                name = member.filename
                if not name.startswith(_SAMPLES) or not name.endswith(".json"):
                    continue
                place = f"{source.path}, {name}"
                yield place, _read_member(archive, member, place)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise BadFileError(f"the zip file is damaged: {error}") from None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: str) -> bytes | Skipped:
    if member.file_size > MAX_LINE_BYTES:
        return Skipped(place, TOO_LONG)
    try:
        if member.compress_type == _ZSTANDARD:
            raw = _read_zstandard(archive, member)
        else:
            with archive.open(member) as stream:
                raw = stream.read(MAX_LINE_BYTES + 1)
    except NotImplementedError as error:
        return Skipped(place, f"its compression is not supported: {error}")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        return Skipped(place, f"it is damaged: {error}")
    return Skipped(place, TOO_LONG) if len(raw) > MAX_LINE_BYTES else raw


def _read_zstandard(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Read a member that Zstandard compressed, which Python's own module cannot do."""
    if find_spec("zstandard") is None:
        raise NotImplementedError("run: pip install 'tiltyard[traces]'")
    import zstandard  # noqa: PLC0415 - an extra

    # A name that the local header repeats, and an extra field, stand before the content.
    assert archive.fp is not None
    archive.fp.seek(member.header_offset)
    header = archive.fp.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        raise EOFError("its header is missing")
    signature, name_size, extra_size = _LOCAL_HEADER.unpack(header)
    if signature != _LOCAL_SIGNATURE:
        raise zipfile.BadZipFile("its header is wrong")
    archive.fp.seek(name_size + extra_size, os.SEEK_CUR)
    compressed = archive.fp.read(min(member.compress_size, MAX_LINE_BYTES))
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    try:
        with reader.stream_reader(compressed) as stream:
            raw: bytes = stream.read(MAX_LINE_BYTES + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None
    if len(raw) <= MAX_LINE_BYTES and zlib.crc32(raw) != member.CRC:
        raise zipfile.BadZipFile("its checksum is wrong")
    return raw


def _sample(raw: Mapping[str, Any], place: str, tools: ToolLists) -> RecordedRun:
    attached = raw.get("attachments")
    texts = attached if isinstance(attached, Mapping) else {}

    def resolve(text: str) -> str:
        if not text.startswith(_ATTACHED):
            return text
        found = texts.get(text.removeprefix(_ATTACHED))
        if not isinstance(found, str):
            raise BadRunError(f"the attachment {text[:100]!r} is missing")
        return found

    transcript = Transcript()
    read_messages(transcript, raw.get("messages"), resolve)
    metadata = raw.get("metadata")
    labels = read_labels(metadata if isinstance(metadata, Mapping) else {})
    run_id = f"{named(raw.get('id'), place)} (epoch {named(raw.get('epoch'), '1')})"
    return transcript.finish(run_id, place, _tools_of(raw, tools), labels)


def _tools_of(raw: Mapping[str, Any], tools: ToolLists) -> Any:
    """Return the tools that the first call of a model declares, if there is one."""
    for event in as_list(raw.get("events"), "events"):
        if isinstance(event, Mapping) and event.get("event") == "model":
            listed = event.get("tools")
            if isinstance(listed, list) and listed:
                return tools.read(listed)
    return None
