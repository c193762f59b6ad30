"""The decider: one process that asks a guardrail on behalf of all guards of a conversation.

Guards send one question at a time over their connections, and the decider answers in the order of
arrival. It ends when the last guard has gone, or some time after that if a guard asks for it.
"""

import fcntl
import gc
import json
import os
import select
import selectors
import signal
import socket
import sys
from contextlib import ExitStack, closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tiltyard.bridges.guard.link import PAIR, receive, send_encoded
from tiltyard.bridges.guard.record import FORMAT, VERSION, Recorder
from tiltyard.bridges.guard.talk import Talk, stop_hung, with_timer_stopped
from tiltyard.contracts.asking import MAX_QUESTIONS, Ask, no_model
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.contracts.policy import NO_POLICY, PolicyError, read_policy
from tiltyard.episode.conversation import OpenConversation, open_locally
from tiltyard.foundation.printable import printable
from tiltyard.inference import OverlayError, read_overlay

if TYPE_CHECKING:
    from tiltyard.isolation.host.guest_pool import GuestPool

ADVISED: Final = "advised"
"""The shipped guardrail that asks a model."""
MAX_CONVERSATIONS: Final = 200
GUARDRAIL_SECONDS: Final = 5.0
"""How long a jailed guardrail may take for an answer."""
_YEAR_SECONDS: Final = 31_536_000.0


class WrongSettingsError(Exception):
    """The settings of a guard cannot be used. The message says what to do."""


class Desk:
    """All conversations of this process. They have the same settings and share nothing else."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] | None = None
        self._stack = ExitStack()
        self._talks: dict[str, Talk] = {}
        self.guardrail = ""
        self._model_seconds = 0.0
        """How long the questions to a model may take during one call."""
        self.linger = 0.0
        """How long the decider waits for another guard, in seconds."""

    def greet(self, hello: dict[str, Any]) -> dict[str, Any]:
        settings = hello["settings"]
        if self._settings is None:
            self._open(settings)
            self._settings = settings
        elif _digest(settings) != _digest(self._settings):
            raise WrongSettingsError(
                "the session runs with another guardrail, policy or overlay, or another choice of "
                "--shadow or --record; give all guards of a session the same options"
            )
        self.linger = max(self.linger, hello.get("linger", 0.0))
        talk = self._talk(hello.get("conversation", ""))
        for text in hello.get("said", ()):
            # Each guard of a session may bring the same message.
            talk.say(text, once=True)
        return {"guardrail": self.guardrail, "model_seconds": self._model_seconds}

    def _open(self, settings: dict[str, Any]) -> None:
        try:
            self._policy = read_policy(settings["policy"]) if settings["policy"] else NO_POLICY
            self._overlay = read_overlay(settings["overlay"], settings["overlay_file"])
        except (PolicyError, OverlayError) as error:
            raise WrongSettingsError(str(error)) from None
        self.guardrail, self._begin = open_guardrail(
            settings["guardrail"],
            self._stack,
            unsafe=settings["unsafe"],
            ask=self._open_model(settings),
        )
        self._session = settings["session"]
        self._record = settings["record"]
        self._shadow = settings["shadow"]

    def _open_model(self, settings: dict[str, Any]) -> Ask:
        if not settings["model"]:
            return no_model
        # Imported here, because most guardrails ask no model.
        from tiltyard.agents.model import questions  # noqa: PLC0415

        try:
            place = Path(settings["model_file"]).parent
            found = questions.read_model_settings(settings["model"], place)
            ask = self._stack.enter_context(questions.open_model(found))
        except questions.ModelSettingsError as error:
            raise WrongSettingsError(str(error)) from None
        # One request more than questions: the first one may be sent in another form.
        self._model_seconds = (MAX_QUESTIONS + 1) * found.seconds
        return with_timer_stopped(ask)

    def _talk(self, key: str) -> Talk:
        talk = self._talks.pop(key, None)
        if talk is None:
            if len(self._talks) >= MAX_CONVERSATIONS:
                self._talks.pop(next(iter(self._talks))).close()
            try:
                recorder = Recorder(self._record, self._session)
            except OSError as error:
                raise WrongSettingsError(
                    f"--record {self._record} cannot be written: {error.strerror}"
                ) from None
            recorder.write(
                "session",
                format=FORMAT,
                version=VERSION,
                session=self._session,
                guardrail=self.guardrail,
                shadow=self._shadow,
                policy=self._policy,
            )
            talk = Talk(self._begin, self._policy, self._overlay, recorder)
        self._talks[key] = talk
        return talk

    def answer(self, header: dict[str, Any], frame: bytes) -> dict[str, Any]:
        if self._settings is None:
            return {"error": "no guard of this session is ready yet"}
        key = header.get("conversation", "")
        if header.get("begun") and key not in self._talks:
            reason = f"the conversation is over: {MAX_CONVERSATIONS} others are newer"
            over = {"guardrail": self.guardrail, "action": "deny", "withheld": True}
            return over | {"reason": reason}
        talk = self._talk(key)
        op = header["op"]
        if op == "call":
            reply = talk.call(header | {"shadow": self._shadow}, frame)
        elif op == "result":
            reply = talk.result(header["call"], frame)
        elif op == "tools":
            reply = talk.tools(header["server"], frame)
        elif op == "confirmed":
            reply = talk.confirmed(header["call"], yes=header["yes"])
        else:
            reply = talk.say(header["text"])
        return {"guardrail": self.guardrail} | reply

    def close(self) -> None:
        for talk in self._talks.values():
            talk.close()
        self._stack.close()


def _digest(settings: dict[str, Any]) -> str:
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def shipped() -> dict[str, MakeGuardrail]:
    """Return the guardrails that a name chooses."""
    from tiltyard.guardrails import GUARDRAIL_LADDER  # noqa: PLC0415 - the others are not needed
    from tiltyard.guardrails.advised import AdvisedGuardrail  # noqa: PLC0415 - as above
    from tiltyard.guardrails.declared import DeclaredGuardrail  # noqa: PLC0415 - as above

    return {"declared": DeclaredGuardrail, ADVISED: AdvisedGuardrail, **GUARDRAIL_LADDER}


def open_guardrail(
    wanted: str, stack: ExitStack, *, unsafe: bool, ask: Ask = no_model
) -> tuple[str, OpenConversation]:
    """Return a guardrail's name, and what begins a conversation with it.

    A shipped guardrail runs in this process. A file or a submission runs in the jail. `ask` answers
    the questions of both.
    """
    plain = "".join(char for char in wanted.lower() if char.isalnum())
    for name, make in shipped().items():
        if plain == "".join(char for char in name if char.isalnum()):
            if name == ADVISED and ask is no_model:
                raise WrongSettingsError(
                    f"the guardrail {name!r} asks a model; name one with --model"
                )
            return name, open_locally(make, ask)
    path = Path(wanted)
    if not path.exists():
        raise WrongSettingsError(
            f"there is no guardrail {printable(wanted, limit=200)!r}, neither as a path nor as a "
            f"name; the names are {', '.join(shipped())}"
        )
    name, pool = _open_submission(path, stack, unsafe=unsafe)
    return name, partial(pool.conversation, ask=ask)


def _open_submission(path: Path, stack: ExitStack, *, unsafe: bool) -> "tuple[str, GuestPool]":
    # Imported here, because a shipped guardrail needs no jail.
    from tiltyard.isolation.host.guest_pool import GuestPool  # noqa: PLC0415
    from tiltyard.isolation.host.limits import JailError, Level, Limits  # noqa: PLC0415
    from tiltyard.isolation.host.probe import probe  # noqa: PLC0415
    from tiltyard.isolation.host.session import Deadlines  # noqa: PLC0415
    from tiltyard.submissions import SubmissionError, open_submission  # noqa: PLC0415

    scratch = Path(stack.enter_context(TemporaryDirectory(prefix="tiltyard-guard-")))
    scratch.chmod(0o755)  # a guest runs as another user, who must be able to read it
    try:
        submission = open_submission(path, scratch / "submission")
        submission.module("guardrail")
        if not unsafe and probe().level is Level.C:
            raise WrongSettingsError(
                "this machine cannot confine a stranger's code. Run `tiltyard doctor` to see what "
                "is missing, or pass --unsafe-no-sandbox if you trust the guardrail"
            )
        deadlines = Deadlines(answer=GUARDRAIL_SECONDS, whole=_YEAR_SECONDS)
        limits = Limits(cpu_seconds=int(_YEAR_SECONDS))
        pool = GuestPool(submission, "guardrail", limits=limits, deadlines=deadlines, unsafe=unsafe)
        stack.enter_context(pool)
    except (SubmissionError, JailError) as error:
        raise WrongSettingsError(str(error)) from None
    return submission.name, pool


def serve_one_guard(connection: socket.socket, desk: Desk) -> None:
    """Answer a guard until it has gone."""
    while _serve_one(connection, desk):
        pass


def serve_session(listener: socket.socket, path: Path, desk: Desk) -> None:
    """Answer guards until the last one has gone, and as long as it wants after that."""
    guards = selectors.DefaultSelector()
    guards.register(listener, selectors.EVENT_READ)
    listener.settimeout(0)
    connected = 0
    while True:
        ready = guards.select(desk.linger if desk.linger and not connected else None)
        if not ready and _leave(listener, path):
            return
        for key, _ in ready:
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is listener:
                with suppress(BlockingIOError):
                    guards.register(listener.accept()[0], selectors.EVENT_READ)
                    connected += 1
            elif not _serve_one(connection, desk):
                guards.unregister(connection)
                connection.close()
                connected -= 1
                if not connected and not desk.linger and _leave(listener, path):
                    return


def _leave(listener: socket.socket, path: Path) -> bool:
    """Remove the socket, unless another guard has just joined."""
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if select.select([listener], [], [], 0)[0]:
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(lock)


def _serve_one(connection: socket.socket, desk: Desk) -> bool:
    """Answer one question. Return False at the end of the connection."""
    try:
        encoded, frame = receive(connection)
        header: dict[str, Any] = msgspec.json.decode(encoded)
    except (EOFError, OSError, ValueError):
        return False
    try:
        reply = _answer(header, frame, desk)
    except Exception as error:  # noqa: BLE001 - a guard must get an answer, whatever happens
        reply = {"action": "deny", "withheld": True, "guardrail": desk.guardrail}
        reply["reason"] = (
            f"the decider failed: {type(error).__name__}: {printable(error, limit=300)}"
        )
    try:
        send_encoded(connection, msgspec.json.encode(reply))
    except OSError:
        return False
    return True


def _answer(header: dict[str, Any], frame: bytes, desk: Desk) -> dict[str, Any]:
    if header["op"] != "hello":
        return desk.answer(header, frame)
    try:
        return desk.greet(header)
    except WrongSettingsError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - the guardrail's class may raise anything
        return {"error": f"the guardrail cannot start: {printable(error, limit=500)}"}


def main() -> None:
    descriptor, where = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The guards end, and the decider with them.
    signal.signal(signal.SIGALRM, stop_hung)
    connection = socket.socket(fileno=descriptor)
    gc.freeze()  # The modules stay; only a conversation's own objects are collected.
    gc.set_threshold(20_000)
    with closing(Desk()) as desk:
        if where == PAIR:
            serve_one_guard(connection, desk)
        else:
            serve_session(connection, Path(where), desk)


if __name__ == "__main__":
    main()
