"""The guard over stdio: start the server, and stand between its pipes and the client's."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, Final

from tiltyard.bridges.guard import answers
from tiltyard.bridges.guard.frames import FrameReader, Message, RefusedError, parse
from tiltyard.bridges.guard.gate import LIST_SECONDS, Gate
from tiltyard.bridges.guard.memory import Outcome

_END_SECONDS: Final = 5.0
"""How long a server may take to end after its input has ended."""
_STOP_SECONDS: Final = 1.0


class StdioGuard:
    """One server process, between a client's pipes."""

    def __init__(self, gate: Gate, command: Sequence[str]) -> None:
        self._gate = gate
        self._locks = (threading.Lock(), threading.Lock())
        self._server = subprocess.Popen(  # noqa: S603 - the operator's command
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._to_server = self._server.stdin.fileno()
        self._from_server = self._server.stdout.fileno()

    def run(self) -> int:
        """Forward frames until one side ends. Return the server's exit code."""
        back = threading.Thread(target=self._pump_back, daemon=True)
        back.start()
        forth = threading.Thread(target=self._pump_forth, daemon=True)
        forth.start()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._server.terminate())
        code = self._server.wait()
        back.join(_END_SECONDS)
        return code if code >= 0 else 128 - code

    def _pump_forth(self) -> None:
        """Forward what the client sends; then end the server."""
        for frame in FrameReader(sys.stdin.fileno()):
            if isinstance(frame, bytes) and not frame.strip():
                continue
            try:
                if isinstance(frame, RefusedError):
                    raise frame
                outcome = self._gate.from_client(parse(frame), self._list_page)
            except RefusedError as refused:
                outcome = Outcome(to_client=answers.refusal(refused))
            if not self._send(outcome):
                break
        self._end_server()

    def _pump_back(self) -> None:
        """Forward what the server sends."""
        for frame in FrameReader(self._from_server):
            if isinstance(frame, bytes) and not frame.strip():
                continue
            try:
                if isinstance(frame, RefusedError):
                    raise frame
                outcome = self._gate.from_server(parse(frame))
            except RefusedError as refused:
                warn(f"a frame of the server was not forwarded: {refused.why}")
                outcome = self._gate.refused_by_gate(refused)
            self._send(outcome)

    def _send(self, outcome: Outcome) -> bool:
        """Send what an outcome says. Return False if the server is gone."""
        if outcome.to_client is not None:
            with contextlib.suppress(OSError), self._locks[0]:
                _write(sys.stdout.fileno(), outcome.to_client)
        if outcome.to_server is not None:
            try:
                with self._locks[1]:
                    _write(self._to_server, outcome.to_server)
            except OSError:
                return False
        return True

    def _list_page(self, request: dict[str, Any]) -> Message | None:
        _, frame, answer = self._gate.begin_own(request)
        self._send(Outcome(to_server=frame))
        try:
            return answer.get(timeout=LIST_SECONDS)
        except queue.Empty:
            return None

    def stop_server(self) -> None:
        """End the server at once."""
        self._server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(_STOP_SECONDS)

    def _end_server(self) -> None:
        assert self._server.stdin is not None
        with contextlib.suppress(OSError):
            self._server.stdin.close()
        for end in (self._server.terminate, self._server.kill):
            try:
                self._server.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                end()


def warn(sentence: str) -> None:
    sys.stderr.write(f"tiltyard guard: {sentence}\n")
    sys.stderr.flush()


def _write(descriptor: int, frame: bytes) -> None:
    data = memoryview(frame + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]
