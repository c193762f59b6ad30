"""The record of a conversation: one JSON object a line. `docs/guard.md` describes the format."""

import os
import secrets
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

FORMAT: Final = "tiltyard-record"
VERSION: Final = 1


class Recorder:
    """Writes one file. Without a directory, it writes nothing."""

    def __init__(self, directory: str, session: str) -> None:
        self._handle: int | None = None
        if not directory:
            return
        place = Path(directory)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = place / f"{session or 'guard'}-{secrets.token_hex(8)}.jsonl"
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(path, flags, 0o600)

    def write(self, kind: str, **fields: Any) -> None:
        if self._handle is None:
            return
        try:
            line = msgspec.json.encode({"type": kind, **fields}) + b"\n"
            while line:
                line = line[os.write(self._handle, line) :]
        except (OSError, TypeError, ValueError) as error:
            sys.stderr.write(f"tiltyard guard: the record stops here: {error}\n")
            self.close()

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
