"""The record of a match with a model: every exchange, under the hash of its request.

A hosted model may answer the same request differently, so the record defines the match. Within one
scope, such as one candidate's replay, a repeated request gets the recorded answer. So an
interrupted match continues where it stopped, and a finished match can be replayed without a model.
The record contains no addresses and no credentials.
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
"""The limit for the exchanges of one match."""


class Identity(Struct, frozen=True, forbid_unknown_fields=True):
    """The agent and the model of a record."""

    agent: str
    """The agent's name in the user's command."""
    model: str
    server: str = ""
    """The version of the server, if it can change the answers and is known."""
    version: int = RECORD_VERSION


class Answered(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply of the endpoint, unchanged."""

    status: int
    body: str


class Exchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """One exchange, as a file of the record has it."""

    scope: tuple[str, ...]
    asked: dict[str, Any]
    answered: Answered
    digest: str
    """A hash of the answer, to detect changes by hand."""


class Record:
    """The exchanges of one match, in `directory`, or in memory without one.

    A `closed` record takes no new exchanges: it is for replays.
    """

    def __init__(self, directory: Path | None = None, *, closed: bool = False) -> None:
        self._directory = directory
        self.closed = closed
        self._used: dict[str, str] = {}
        """Hashes of the exchanges read or added since the record was opened."""
        self._kept: dict[str, Answered] = {}
        """The exchanges of a record without a directory."""
        self._bytes = 0
        """The bytes written since the record was opened."""
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        """The identity with which the record was begun; None for a new record."""
        if self._identity is None and self._directory is not None:
            path = self._directory / MANIFEST
            if path.is_file():
                found = _decoded(path, Identity)
                if found.version != RECORD_VERSION:
                    raise AgentGoneError(
                        f"{path} has version {found.version}; expected {RECORD_VERSION}"
                    )
                self._identity = found
        return self._identity

    def begin(self, identity: Identity) -> None:
        """Begin or continue the record. Raises if it was begun with another identity."""
        known = self.identity
        if known is None and not self.closed:
            self._identity = identity
            if self._directory is not None:
                self._directory.mkdir(parents=True, exist_ok=True)
                write_whole(self._directory / MANIFEST, msgspec.json.encode(identity))
        elif known != identity:
            if known is None:
                raise AgentGoneError("the record is empty, so there is nothing to replay")
            raise AgentGoneError(
                f"this record was begun with {known.model} ({known.server or known.agent}), "
                f"not with {identity.model} ({identity.server or identity.agent}); "
                "use --fresh to begin a new record"
            )

    def key(self, scope: tuple[str, ...], asked: dict[str, Any]) -> str:
        """Return the key of an exchange: a hash of everything that its answer may depend on."""
        identity = self.identity
        known = None if identity is None else msgspec.to_builtins(identity)
        return sha256(_canonical([known, scope, asked])).hexdigest()

    def find(self, key: str) -> Answered | None:
        """Return the recorded answer, or None."""
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
        """Add an exchange to the record."""
        if self.closed:
            raise AgentGoneError("the record is closed and takes no new exchanges")
        data = msgspec.json.encode(Exchanged(scope, asked, answered, _digest(answered)))
        self._bytes += len(data)
        if len(data) > MAX_FILE_BYTES or self._bytes > MAX_BYTES:
            raise AgentGoneError("the exchanges with the model are too large for the record")
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
        """Return a hash of all exchanges that were used, in any order."""
        return sha256(_canonical(sorted(self._used.items()))).hexdigest()


def _meaning(answered: Answered) -> str:
    """Return a hash of the parts of an answer that matter: not its id, time or speed."""
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
    """Return the content of a record's file, if no byte of it was changed."""
    data = _read(path)
    try:
        found = msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:
        raise AgentGoneError(f"{path} is not a file of a record: {error}") from None
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
