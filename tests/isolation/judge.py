"""A judge process with canaries: it runs probes in the jail and reports the outcome.

`conftest.py` starts it as root and as an ordinary user, and talks to it over standard input and
output, one line of JSON each way. It has what a guest must not get: a file, an environment
variable, a buffer in memory, listeners, an inheritable descriptor.
"""

import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tiltyard.isolation.host.fork_server import FIRST_UID, ForkServer, start_guest
from tiltyard.isolation.host.guest_process import JailedGuest
from tiltyard.isolation.host.limits import Level, Limits
from tiltyard.isolation.host.probe import probe

VARIABLE: Final = "TILTYARD_CANARY"
_SET_DUMPABLE: Final = 4
_REMOVE_SEGMENT: Final = 0


class Judge:
    """The canaries, and checks whether a probe reached them."""

    def __init__(self, directory: Path, slot: int) -> None:
        self.slot = slot
        self.guest_uid = os.getuid() or FIRST_UID + slot
        self.directory = directory
        self.secret = directory / "secret.txt"
        self.secret.touch(mode=0o600)
        self.secret.write_text(secrets.token_hex(16), encoding="utf-8")
        (directory / "outside").mkdir(mode=0o755)
        self.buffer = ctypes.create_string_buffer(secrets.token_hex(16).encode())
        self.shared = Path("/dev/shm", f"tiltyard-{secrets.token_hex(8)}")  # noqa: S108 - a target
        self.descriptor = os.open(self.secret, os.O_RDONLY)
        os.set_inheritable(self.descriptor, True)  # noqa: FBT003
        abstract = f"\0tiltyard-{secrets.token_hex(8)}"
        self.listeners = {
            "tcp": _listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": _listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "abstract": _listening(socket.AF_UNIX, socket.SOCK_STREAM, abstract),
            "path": _listening(socket.AF_UNIX, socket.SOCK_STREAM, str(directory / "socket")),
        }
        (directory / "socket").chmod(0o600)
        self.signals: list[int] = []
        for number in (signal.SIGUSR1, signal.SIGIO):
            signal.signal(number, lambda number, _: self.signals.append(number))

    def canaries(self) -> dict[str, str]:
        return {
            "secret": self.secret.read_text(encoding="utf-8"),
            "variable": os.environ[VARIABLE],
            "memory": self.buffer.value.decode(),
        }

    def given(self) -> dict[str, Any]:
        """Return the places of all canaries. A guest that knows them still must not get them."""
        return {
            "pid": os.getpid(),
            "secret": str(self.secret),
            "outside": str(self.directory / "outside"),
            "shared": str(self.shared),
            "variable": VARIABLE,
            "address": ctypes.addressof(self.buffer),
            "length": len(self.buffer.value),
            "descriptor": self.descriptor,
            "tcp": self.listeners["tcp"].getsockname()[1],
            "udp": self.listeners["udp"].getsockname()[1],
            "abstract": self.listeners["abstract"].getsockname()[1:].decode(),
            "path": self.listeners["path"].getsockname(),
        }

    def heard(self) -> list[str]:
        """Return the listeners that were reached since the last call."""
        found = ["signal"] if self.signals else []
        self.signals.clear()
        for name, listener in self.listeners.items():
            with suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    listener.recv(100)
                else:
                    listener.accept()[0].close()
                found.append(name)
        return found

    def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        token = secrets.token_hex(8)
        without = frozenset(asked["without"])
        # Start as a judge that does not hide its memory.
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)
        submission = self.directory / "submission"
        submission.mkdir()
        (submission / "probe.py").write_text(asked["source"], encoding="utf-8")
        (submission / "link").symlink_to(self.secret)
        before = self.descriptors()
        guest = start_guest(
            "tiltyard.isolation.guest.probe_script",
            [token],
            level=Level(asked["level"]),
            submission=submission,
            packages=asked.get("packages", ()),
            limits=msgspec.convert(asked.get("limits", {}), Limits),
            slot=self.slot,
            writable=asked.get("writable", False),
            without=without,
        )
        began = time.monotonic()
        with suppress(BrokenPipeError):
            os.write(guest.to_guest, json.dumps(self.given()).encode() + b"\n")
        ended = guest.wait(asked.get("seconds", 10.0))
        if not ended and asked.get("ask_first"):
            os.kill(guest.pid, signal.SIGTERM)
            ended = guest.wait(0.3)
        told = _told(guest, ended=ended)
        guest.kill()
        guest.kill()
        told["seconds"] = time.monotonic() - began
        shutil.rmtree(submission)
        told["survivors"] = self.end_survivors(token)
        told["left"] = self.tidy()
        told["heard"] = self.heard()
        told["descriptors_leaked"] = self.descriptors() - before
        return told

    def run_in_one_pool(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Run a probe in several guests of one fork server, and return the answers.

        `probe` gets the number of its guest as `turn`. With `together`, all guests start before
        the first one gets its turn, and they live until the last one has answered. Each answer
        has the time when the pool began, and when its guest was requested, after `pause` seconds.
        """
        began, requested = time.time(), []
        submission = self.directory / "submission"
        submission.mkdir()
        (submission / "probe.py").write_text(asked["source"], encoding="utf-8")
        fork_server = ForkServer(
            "tiltyard.isolation.guest.probe_script",
            level=Level(asked["level"]),
            submission=submission,
            without=frozenset(asked["without"]),
        )
        answers, guests = [], []
        for turn in range(asked["guests"]):
            time.sleep(asked["pause"])
            requested.append(time.time())
            slot = self.slot + (turn if asked["together"] else 0)
            guests.append(fork_server.request(slot=slot))
            guests[-1].wait_until_started()
            if not asked["together"]:
                answers.append(self.answer(guests[-1], turn))
                guests[-1].kill()
        if asked["together"]:
            answers = [self.answer(guest, turn) for turn, guest in enumerate(guests)]
            for guest in guests:
                guest.kill()
        fork_server.close()
        shutil.rmtree(submission)
        return [
            {**answer, "began": began, "requested": moment}
            for answer, moment in zip(answers, requested, strict=True)
        ]

    def answer(self, guest: JailedGuest, turn: int) -> dict[str, Any]:
        os.write(guest.to_guest, json.dumps({**self.given(), "turn": turn}).encode() + b"\n")
        until = time.monotonic() + 10
        while not guest.output().endswith("}\n") and time.monotonic() < until:
            if guest.wait(0.005):
                break
        return _told(guest, ended=guest.wait(0))

    def linger(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Start a guest that waits for ever, and return how to find its processes."""
        token = secrets.token_hex(8)
        submission = self.directory / "submission"
        submission.mkdir()
        source = "import time\ndef probe(given):\n    print('ready')\n    time.sleep(60)"
        (submission / "probe.py").write_text(source, encoding="utf-8")
        guest = start_guest(
            "tiltyard.isolation.guest.probe_script",
            [token],
            level=Level(asked["level"]),
            submission=submission,
            slot=self.slot,
            without=frozenset(asked["without"]),
        )
        if asked["linger"] == "once ready":
            os.write(guest.to_guest, b"{}\n")
            while "ready" not in guest.output():
                time.sleep(0.005)
        return {"token": token, "pid": os.getpid()}

    def descriptors(self) -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    def processes(self, token: str) -> Iterator[int]:
        """Yield the processes of the guest's user, or with the guest's command line."""
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with suppress(OSError):
                line = Path(entry.path, "cmdline").read_bytes()
                status = Path(entry.path, "status").read_text(encoding="utf-8")
                state = status.split("State:\t")[1][0]
                uid = int(status.split("Uid:\t")[1].split()[0])
                if state != "Z" and (token.encode() in line or uid == self.guest_uid):
                    yield int(entry.name)

    def end_survivors(self, token: str) -> int:
        found = list(self.processes(token))
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while list(self.processes(token)):
            time.sleep(0.005)
        return len(found)

    def tidy(self) -> list[str]:
        """Remove and return everything that a guest has left behind."""
        found = [str(path.name) for path in (self.directory / "outside").iterdir()]
        for path in (self.directory / "outside").iterdir():
            path.unlink()
        if self.shared.exists():
            found.append("shared")
            self.shared.unlink()
        for line in Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if int(fields[7]) == self.guest_uid:
                found.append("segment")
                ctypes.CDLL(None).shmctl(int(fields[1]), _REMOVE_SEGMENT, None)
        return found


def _listening(family: int, kind: int, address: Any) -> socket.socket:
    listener = socket.socket(family, kind)
    listener.bind(address)
    listener.settimeout(0)
    if kind == socket.SOCK_STREAM:
        listener.listen()
    return listener


def _told(guest: JailedGuest, *, ended: bool) -> dict[str, Any]:
    """Return the probe's answer, or in one word how its process ended."""
    output = guest.output()
    last = output.strip().rpartition("\n")[2]
    told: dict[str, Any] = {"output": output[-2000:], "size": len(output)}
    if last.startswith("{"):
        answer = json.loads(last)
        told |= answer
        told["outcome"] = answer.get("errno") or answer.get("raised") or "returned"
    elif not ended:
        told["outcome"] = "deadline"
    elif (guest.exit_code(0) or 0) < 0:
        told["outcome"] = signal.Signals(-(guest.exit_code(0) or 0)).name
    else:
        told["outcome"] = "refused" if last.startswith("tiltyard:") else "silent"
    return told


def _probe_without_bubblewrap() -> object:
    before, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    try:
        return msgspec.to_builtins(probe())
    finally:
        os.environ["PATH"] = before


def main() -> None:
    judge = Judge(Path(sys.argv[1]), int(sys.argv[2]))
    _say(judge.canaries())
    for line in sys.stdin:
        asked = json.loads(line)
        if "doctor" in asked:
            _say(_probe_without_bubblewrap())
        elif "guests" in asked:
            _say(judge.run_in_one_pool(asked))
        else:
            _say(judge.linger(asked) if "linger" in asked else judge.run(asked))


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
