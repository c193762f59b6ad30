"""Sessions: what an agent did in a served world, as files.

A session is a directory. `session.json` says which world it is, and `calls.jsonl` has a line for
each call, written before the agent gets the result: a server that is killed loses nothing. Both
files are hostile input for the judge. It takes settings and calls from them, and no results.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Self

import msgspec
from msgspec import Meta, Struct

from tiltyard import __version__
from tiltyard.arena.check import check_names
from tiltyard.arena.judging import Call
from tiltyard.arena.stage import Stage, StageError, Staging, make_call, make_calls, set_up
from tiltyard.contracts.guardrail import Result
from tiltyard.contracts.hostile_json import JsonError, copy_json
from tiltyard.foundation.files import NotPlainError, open_plain, read_at_most, write_whole
from tiltyard.foundation.printable import printable
from tiltyard.packs.load import load_pack, pack_files, read_pack, shipped_packs
from tiltyard.packs.results import SOURCE
from tiltyard.packs.schema import Pack

SESSION: Final = "session.json"
CALLS: Final = "calls.jsonl"
PACKS: Final = "packs"
FORMAT: Final = 1
MAX_CALLS: Final = 500
MAX_ARGS_BYTES: Final = 200_000
MAX_SESSION_BYTES: Final = 200_000
MAX_CALLS_BYTES: Final = 64_000_000
FULL_BYTES: Final = 32_000_000
"""A session with so many bytes takes no more calls: no result is as large as what is left."""
_MAX_NAME_CHARS: Final = 200


class SessionError(ValueError):
    """A session cannot be used. The message names the file and says what to do."""


class SessionHead(Struct, frozen=True, forbid_unknown_fields=True):
    """What `session.json` contains."""

    format: int
    tiltyard: Annotated[str, Meta(max_length=100)]
    """The version that served the world."""
    staging: Staging
    say: str
    """What the user asks for."""
    world: Annotated[str, Meta(max_length=100)]
    """A digest of the world, its tools and the task."""
    own_packs: tuple[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}$")], ...] = ()
    """Packs that Tiltyard does not ship; the directory has a copy of each."""


class CallLine(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of `calls.jsonl`."""

    tool: str
    args: dict[str, Any]
    ok: bool
    output: str = ""
    error: str | None = None
    structured: Any = None
    refused: bool = False
    """True if the call was not made at all: the arguments or the session were too large."""


class Session(Struct, frozen=True):
    """A session that was read: the stage, and the calls on it."""

    head: SessionHead
    stage: Stage
    lines: tuple[CallLine, ...]
    is_cut: bool
    """Whether the last line is incomplete."""

    @property
    def calls(self) -> list[Call]:
        """The calls that were made, without those that the server refused."""
        return [(line.tool, line.args) for line in self.lines if not line.refused]

    @property
    def numbers(self) -> list[int]:
        """The line of each of the calls, counted from 1."""
        return [number for number, line in enumerate(self.lines, 1) if not line.refused]


def find_packs(wanted: Iterable[str]) -> dict[str, Pack]:
    """Return packs by name: shipped names, or directories of packs."""
    found: dict[str, Pack] = {}
    for name in wanted:
        if name in shipped_packs():
            found[name] = shipped_packs()[name]
            continue
        pack = load_pack(Path(name))
        found[pack.name] = pack
    for pack in found.values():
        problems = check_names(pack, {**shipped_packs(), **found})
        if problems:
            raise SessionError(f"the pack {pack.name} is wrong: {problems[0]}")
    return found


def create(directory: Path, stage: Stage, sources: list[str]) -> SessionHead:
    """Write the head of a new session. `sources` has the names and directories of its packs."""
    if directory.exists() and any(directory.iterdir()):
        raise SessionError(f"{directory} is not empty; name a new directory")
    own: list[str] = []
    for source in sources:
        if source not in shipped_packs():
            text = "\n".join(pack_files(Path(source)).values())
            name = read_pack(text, source).name
            write_whole(directory / PACKS / f"{name}.toml", text.encode(), secret=True)
            own.append(name)
    head = SessionHead(
        FORMAT, __version__, stage.staging, stage.say, digest_of(stage), tuple(sorted(own))
    )
    data = msgspec.json.format(msgspec.json.encode(head), indent=1)
    write_whole(directory / SESSION, data + b"\n", secret=True)
    return head


def digest_of(stage: Stage) -> str:
    """Return a digest of everything that the agent can find out, and of the task."""
    records = [
        (record.type, record.key, {name: leaf.value for name, leaf in record.fields.items()})
        for type_ in sorted(stage.world.records)
        for _, record in sorted(stage.world.of_type(type_).items())
    ]
    data = (records, stage.surface.declarations, stage.say, stage.cell.expected)
    return hashlib.sha256(msgspec.json.encode(data)).hexdigest()


def read_session(directory: Path) -> Session:
    """Read a session and set up its stage again."""
    head, stage = _read_head(directory)
    lines, is_cut = _read_lines(directory)
    return Session(head, stage, lines, is_cut)


def _read_head(directory: Path) -> tuple[SessionHead, Stage]:
    path = directory / SESSION
    data = read_plain(path, MAX_SESSION_BYTES)
    try:
        head = msgspec.json.decode(data, type=SessionHead)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SessionError(f"{path}: {printable(error, limit=300)}") from None
    if head.format != FORMAT:
        raise SessionError(f"{path}: format {head.format}; this version reads format {FORMAT}")
    packs = {**shipped_packs(), **_read_own_packs(directory, head)}
    try:
        stage = set_up(head.staging, packs)
    except StageError as error:
        raise SessionError(f"{path}: {error}") from None
    if digest_of(stage) != head.world:
        raise SessionError(
            f"{path}: made by Tiltyard {printable(head.tiltyard, limit=40)} with another world for "
            f"this seed; judge it with that version (this is {__version__})"
        )
    return head, stage


def _read_own_packs(directory: Path, head: SessionHead) -> dict[str, Pack]:
    paths = [str(directory / PACKS / f"{name}.toml") for name in head.own_packs]
    return find_packs(paths) if paths else {}


def read_plain(path: Path, limit: int) -> bytes:
    """Return the content of a file of a session."""
    try:
        with open_plain(str(path), None) as (handle, status):
            data = read_at_most(handle, status, limit)
    except NotPlainError as error:
        reason = error.reason or error.problem.name.lower()
        raise SessionError(
            f"{path}: {reason}; name the directory of a session of `tiltyard world serve`"
        ) from None
    if data is None:
        raise SessionError(f"{path}: larger than {limit:,} bytes")
    return data


def _read_lines(directory: Path) -> tuple[tuple[CallLine, ...], bool]:
    path = directory / CALLS
    if not path.exists():
        return (), False
    *whole, rest = read_plain(path, MAX_CALLS_BYTES).split(b"\n")
    if len(whole) > MAX_CALLS:
        raise SessionError(f"{path}: more than {MAX_CALLS} calls")
    return tuple(_read_line(path, at, line) for at, line in enumerate(whole, 1)), bool(rest)


def _read_line(path: Path, number: int, data: bytes) -> CallLine:
    try:
        line = msgspec.json.decode(data, type=CallLine)
        accept_args(line.args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, JsonError) as error:
        raise SessionError(f"{path}, line {number}: {printable(error, limit=300)}") from None
    return line


class LiveSession:
    """A session that is being served: runs calls, and writes them down."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        path = self.directory / CALLS
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(handle, "r+b", buffering=0)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._go_on()
        except BlockingIOError:
            self._file.close()
            raise SessionError(
                f"{self.directory}: another server has this session open; end it, or name a new one"
            ) from None
        except BaseException:
            self._file.close()
            raise
        return self

    def _go_on(self) -> None:
        """Make the calls of an earlier server again, and cut off a line that it left unfinished."""
        session = read_session(self.directory)
        self.head, self.stage = session.head, session.stage
        made = make_calls(self.stage.surface, self.stage.world, session.calls)
        self._world = made[-1].world if made else self.stage.world
        self.count = len(session.lines)
        assert self._file is not None
        data = self._file.read()
        self._size = data.rfind(b"\n") + 1
        self._file.truncate(self._size)
        self._file.seek(self._size)

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        self._file.close()

    def call(self, tool: str, args: object) -> Result:
        """Make a call and write it down. No tool and no argument makes this raise."""
        name = printable(tool, limit=_MAX_NAME_CHARS)
        if self.count >= MAX_CALLS or self._size >= FULL_BYTES:
            return _failed(f"this session is full: it has {self.count} calls")
        try:
            copied = accept_args(args)
        except JsonError as error:
            return self._note(name, {}, _failed(f"the input{error}"), refused=True)
        made = make_call(self.stage.surface, self._world, name, copied)
        self._world = made.world
        return self._note(name, copied, made.result)

    def _note(
        self, tool: str, args: dict[str, Any], result: Result, *, refused: bool = False
    ) -> Result:
        line = line_of(tool, args, result, refused=refused)
        data = msgspec.json.encode(line) + b"\n"
        assert self._file is not None
        self._file.write(data)
        self.count += 1
        self._size += len(data)
        return result


def accept_args(args: object) -> dict[str, Any]:
    """Return a copy of a call's arguments. Refuse what is no JSON object, or too large."""
    try:
        copied = copy_json({} if args is None else args)
    except RecursionError:
        raise JsonError(" is nested too deep") from None
    if not isinstance(copied, dict):
        raise JsonError(" is no object")
    size = len(msgspec.json.encode(copied))
    if size > MAX_ARGS_BYTES:
        raise JsonError(f" has {size:,} bytes; the limit is {MAX_ARGS_BYTES:,}")
    return copied


def line_of(tool: str, args: dict[str, Any], result: Result, *, refused: bool = False) -> CallLine:
    """Return a call as a line of `calls.jsonl`."""
    return CallLine(tool, args, result.ok, result.output, result.error, result.structured, refused)


def _failed(problem: str) -> Result:
    return Result(ok=False, output="", error=problem, source=SOURCE)


def differing(session: Session) -> list[int]:
    """Return the calls whose recorded result is not the one that the judge gets."""
    made = make_calls(session.stage.surface, session.stage.world, session.calls)
    recorded = [line for line in session.lines if not line.refused]
    return [
        number
        for number, (line, one) in enumerate(zip(recorded, made, strict=True))
        if _as_written(line_of(one.tool, one.args, one.result)) != line
    ]


def _as_written(line: CallLine) -> CallLine:
    return msgspec.json.decode(msgspec.json.encode(line), type=CallLine)
