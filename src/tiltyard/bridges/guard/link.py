"""The guard's link to the decider: start it, or join the decider of a session.

Guard and decider exchange frames over a Unix socket. A frame is two lengths, a JSON header, and the
bytes of an MCP message.
"""

import fcntl
import json
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

HEAD: Final = struct.Struct(">II")
_CHUNK: Final = 1 << 16
_DECODE: Final = json.JSONDecoder().decode
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
ANSWER_SECONDS: Final = 30.0
"""The decider gives its guardrail less than this. Only a decider that hangs itself reaches it."""
START_SECONDS: Final = 60.0
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_LOCK_FLAGS: Final = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_LOG_FLAGS: Final = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW
PAIR: Final = "pair"
"""Tells the decider that it serves one guard, over a pair of sockets."""
_DECIDER: Final = "tiltyard.bridges.guard.decider"


class DeciderError(Exception):
    """The decider cannot answer. The message is the reason that a denial gives."""


class SessionError(Exception):
    """The session cannot be joined. The message says what to do."""


class Link:
    """A connection to a decider. After the first failure, each question raises a DeciderError."""

    def __init__(self, connection: socket.socket, hello: dict[str, Any]) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._failure = ""
        self._greeted = False
        self._hello = hello
        self.process: subprocess.Popen[bytes] | None = None
        """The decider, if it is for this guard alone."""
        self._wait_at_most(START_SECONDS)
        send(connection, hello)

    def greet(self) -> dict[str, Any]:
        """Wait until the decider is ready. Raise a SessionError if it refuses this guard."""
        with self._lock:
            self._read_greeting()
        if self._failure:
            raise SessionError(self._failure)
        return self._hello

    def ask(self, header: dict[str, Any], frame: bytes = b"") -> dict[str, Any]:
        with self._lock:
            self._read_greeting()
            if self._failure:
                raise DeciderError(self._failure)
            try:
                send(self._connection, header, frame)
                reply: dict[str, Any] = _DECODE(receive(self._connection)[0].decode())
            except BlockingIOError:
                self._fail(f"the decider gave no answer within {ANSWER_SECONDS:.0f} seconds")
            except (OSError, ValueError, EOFError) as error:
                self._fail(f"the decider has ended ({_why(error)})")
        if self._failure:
            raise DeciderError(self._failure)
        return reply

    def _read_greeting(self) -> None:
        if self._greeted or self._failure:
            return
        try:
            reply: dict[str, Any] = _DECODE(receive(self._connection)[0].decode())
            self._wait_at_most(ANSWER_SECONDS + reply.get("model_seconds", 0.0))
        except (OSError, ValueError, EOFError) as error:
            self._fail(f"the decider did not start ({_why(error)})")
            return
        if "error" in reply:
            self._failure = str(reply["error"])
        self._greeted = True
        self._hello = reply

    def _wait_at_most(self, seconds: float) -> None:
        """Limit how long the kernel waits: a timeout of Python would cost a system call each."""
        limit = struct.pack("ll", int(seconds), 0)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._connection.setsockopt(socket.SOL_SOCKET, option, limit)

    def _fail(self, reason: str) -> None:
        self._failure = f"{reason}; restart the guard"
        self._connection.close()

    def close(self) -> None:
        self._connection.close()


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


def send(connection: socket.socket, header: dict[str, Any], frame: bytes = b"") -> None:
    send_encoded(connection, _ENCODE(header).encode(), frame)


def send_encoded(connection: socket.socket, header: bytes, frame: bytes = b"") -> None:
    """Send a header that is JSON already."""
    connection.sendall(HEAD.pack(len(header), len(frame)) + header + frame)


def receive(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return the next header, as JSON, and the frame. Raise an EOFError at the end.

    Each side waits for an answer before it sends again, so no bytes follow.
    """
    data = connection.recv(_CHUNK)
    while len(data) < HEAD.size:
        data += _more(connection)
    header, frame = HEAD.unpack_from(data)
    size = HEAD.size + header + frame
    if len(data) < size:
        rest = bytearray(data)
        while len(rest) < size:
            rest += _more(connection)
        data = bytes(rest)
    return data[HEAD.size : HEAD.size + header], data[HEAD.size + header : size]


def _more(connection: socket.socket) -> bytes:
    chunk = connection.recv(_CHUNK)
    if not chunk:
        raise EOFError
    return chunk


def start_decider(hello: dict[str, Any]) -> Link:
    """Start a decider for this guard alone."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = _spawn(theirs.fileno(), PAIR, None)
    link = Link(ours, hello)
    link.process = process
    return link


def join_session(name: str, hello: dict[str, Any], *, start: bool = True) -> Link:
    """Join the decider of a session. The first guard of the session starts it."""
    directory = session_directory()
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise SessionError(
            f"the session name {name[:80]!r} is not usable; use up to 60 letters, digits, - and _"
        )
    path = directory / f"{name}.sock"
    lock = os.open(directory / f"{name}.lock", _LOCK_FLAGS, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = _connect(path)
        if connection is None and start:
            try:
                _listen(path)
            except OSError as error:
                raise SessionError(
                    f"{path} cannot be used as a socket ({error}); set XDG_RUNTIME_DIR to a "
                    "directory of your own with a short name"
                ) from None
            connection = _connect(path)
        if connection is None:
            raise SessionError(f"no guard of the session {name!r} is running")
        # Within the lock, because a decider without guards ends.
        return Link(connection, hello)
    finally:
        os.close(lock)


def session_directory() -> Path:
    """Return the directory of all sessions, which belongs to this user alone."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and Path(base).is_dir():
        directory = Path(base) / "tiltyard-guard"
    else:
        directory = Path(os.environ.get("TMPDIR") or "/tmp") / f"tiltyard-guard-{os.getuid()}"  # noqa: S108 - checked below
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise SessionError(
            f"{directory} is not a directory that only you can enter; remove it, or set "
            "XDG_RUNTIME_DIR to a directory of your own"
        )
    return directory


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def _listen(path: Path) -> None:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(64)
        log = os.open(path.with_suffix(".log"), _LOG_FLAGS, 0o600)
        try:
            _spawn(listener.fileno(), str(path), log)
        finally:
            os.close(log)


def _spawn(descriptor: int, where: str, log: int | None) -> subprocess.Popen[bytes]:
    """Start the decider. It ends when its last guard has gone."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-m", _DECIDER, str(descriptor), where],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(descriptor,),
        start_new_session=True,
    )
