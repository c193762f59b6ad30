"""The record of a match with a model: every exchange, under the hash of what was asked.

A hosted model cannot be asked the same again, so a match is what was recorded of it. Within one
scope, such as one candidate's replay, the same question has the same answer: it is asked once,
and then read. So a match that was interrupted goes on where it was, and one that is over can be
played again with no model at all. Addresses and credentials have no part in it.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tiltyard.contracts.agent import AgentGoneError
from tiltyard.foundation.files import write_whole

RECORD_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
MAX_FILE_BYTES: Final = 64 << 20
MAX_BYTES: Final = 1 << 30
"""Of one match."""


class Identity(Struct, frozen=True, forbid_unknown_fields=True):
    """Who was asked."""

    agent: str
    """As the user named it."""
    model: str
    server: str = ""
    """What of the server has a part in its answers, where that is known."""
    version: int = RECORD_VERSION


class Answered(Struct, frozen=True, forbid_unknown_fields=True):
    """What came back, as it came."""

    status: int
    body: str


class Exchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """One exchange, as it is kept."""

    scope: tuple[str, ...]
    asked: dict[str, Any]
    answered: Answered
    digest: str
    """Of what came back: whoever changes it by hand is found out."""


class Record:
    """The exchanges of one match, in a directory of their own, or in memory without one.

    With `closed`, nothing is added: what is not there cannot be asked.
    """

    def __init__(self, directory: Path | None = None, *, closed: bool = False) -> None:
        self._directory = directory
        self.closed = closed
        self._used: dict[str, str] = {}
        """Hashes of what was read or added since this was opened."""
        self._kept: dict[str, Answered] = {}
        """Where there is no directory."""
        self._bytes = 0
        """Written since this was opened."""
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        """Who was asked when this record was begun."""
        if self._identity is None and self._directory is not None:
            path = self._directory / MANIFEST
            if path.is_file():
                found = _decoded(path, Identity)
                if found.version != RECORD_VERSION:
                    raise AgentGoneError(
                        f"{path} is of version {found.version}, and this is {RECORD_VERSION}"
                    )
                self._identity = found
        return self._identity

    def begin(self, identity: Identity) -> None:
        """Say who will be asked; a record that was begun with somebody else is not gone on with."""
        known = self.identity
        if known is None and not self.closed:
            self._identity = identity
            if self._directory is not None:
                self._directory.mkdir(parents=True, exist_ok=True)
                write_whole(self._directory / MANIFEST, msgspec.json.encode(identity))
        elif known != identity:
            told = "nobody" if known is None else f"{known.model} ({known.server or known.agent})"
            raise AgentGoneError(
                f"this record was begun with {told}, not with {identity.model} "
                f"({identity.server or identity.agent}); --fresh begins another"
            )

    def key(self, scope: tuple[str, ...], asked: dict[str, Any]) -> str:
        """Return the name of an exchange: a hash of everything that its answer may depend on."""
        identity = self.identity
        told = None if identity is None else msgspec.to_builtins(identity)
        return sha256(_canonical([told, scope, asked])).hexdigest()

    def find(self, key: str) -> Answered | None:
        """Return an answer that was recorded."""
        found = self._kept.get(key)
        if self._directory is not None:
            path = self._directory / f"{key}.json"
            found = self._checked(key, path) if path.is_file() else None
        if found is not None:
            self._used[key] = _meaning(found)
        return found

    def add(
        self, key: str, scope: tuple[str, ...], asked: dict[str, Any], answered: Answered
    ) -> None:
        """Keep an exchange."""
        if self.closed:
            raise AgentGoneError("nothing is added to a record that is closed")
        data = msgspec.json.encode(Exchanged(scope, asked, answered, _digest(answered)))
        self._bytes += len(data)
        if len(data) > MAX_FILE_BYTES or self._bytes > MAX_BYTES:
            raise AgentGoneError("what the model was asked and answered is too large to be kept")
        self._used[key] = _meaning(answered)
        if self._directory is None:
            self._kept[key] = answered
        else:
            write_whole(self._directory / f"{key}.json", data)

    def _checked(self, key: str, path: Path) -> Answered:
        found = _decoded(path, Exchanged)
        if self.key(found.scope, found.asked) != key or _digest(found.answered) != found.digest:
            raise AgentGoneError(f"{path} was changed since it was recorded")
        return found.answered

    @property
    def digest(self) -> str:
        """Return a hash of all exchanges that were used: of what was said, not of when."""
        return sha256(_canonical(sorted(self._used.items()))).hexdigest()


def _meaning(answered: Answered) -> str:
    """Return a hash of what has a part in anything: not an answer's name, its time or its speed."""
    said: Any = answered.body
    try:
        found = msgspec.json.decode(answered.body.encode("utf-8", "replace"))
        said = found["choices"][:1], found.get("usage")
    except (msgspec.MsgspecError, RecursionError, TypeError, KeyError, AttributeError):
        pass
    return sha256(_canonical((answered.status, said))).hexdigest()


def _digest(answered: Answered) -> str:
    return sha256(_canonical(answered)).hexdigest()


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


_Kept = TypeVar("_Kept", Identity, Exchanged)


def _decoded(path: Path, kind: type[_Kept]) -> _Kept:
    """Return what a file of a record says, if it is as it was written, to the byte."""
    data = _read(path)
    try:
        found = msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:
        raise AgentGoneError(f"{path} is no part of a record: {error}") from None
    if msgspec.json.encode(found) != data:
        raise AgentGoneError(f"{path} was changed since it was recorded")
    return found


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise AgentGoneError(f"{path} is too large for a record")
        return path.read_bytes()
    except OSError as error:
        raise AgentGoneError(f"{path} cannot be read: {error.strerror}") from None
