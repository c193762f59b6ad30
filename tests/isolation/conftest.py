"""Fixtures: judges in processes of their own, as root and as an ordinary user."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Users and slots that no other process has: the kernel counts processes by user, and a judge finds
# its own processes by user.
ORDINARY_UIDS = 20_000, 30_000
SLOTS = 1_000, 3_000


class JudgeProcess:
    """One judge process, and its canaries."""

    def __init__(self, uid: int, slot: int) -> None:
        self.uid = uid
        self.directory = Path(tempfile.mkdtemp(prefix="tiltyard-judge-"))
        self.directory.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.directory, uid, uid)
        line = [sys.executable, str(HERE / "judge.py"), str(self.directory), str(slot)]
        self.process = subprocess.Popen(
            [*_readable_by_every_user(uid), *line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "TILTYARD_CANARY": secrets.token_hex(16)},
            text=True,
        )
        self.canaries: dict[str, str] = self._answer()

    def ask(self, **asked: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def probe(self, name: str, level: str, without: Any = (), **asked: Any) -> dict[str, Any]:
        source = (HERE / "probes" / name / "probe.py").read_text(encoding="utf-8")
        return self.run(source, level, without, **asked)

    def probes(self, names: Sequence[str], level: str, without: Any = ()) -> dict[str, Any]:
        """Run several probes in one guest, and return the results of those that did not raise."""
        lines = ["def probe(given):", "    found = {}"]
        for name in names:
            source = (HERE / "probes" / name / "probe.py").read_text(encoding="utf-8")
            lines += [
                f"    names = {{'__file__': __file__}}; exec({source!r}, names)",
                f"    try: found[{name!r}] = names['probe'](given)",
                "    except Exception as error: pass",
            ]
        return self.run("\n".join([*lines, "    return found"]), level, without)

    def run(self, source: str, level: str, without: Any = (), **asked: Any) -> dict[str, Any]:
        told: dict[str, Any] = self.ask(
            source=source, level=level, without=sorted(without), **asked
        )
        return told

    def run_in_one_pool(self, source: str, level: str, guests: int, **asked: Any) -> list[Any]:
        """Run a probe in several guests of one fork server, and return their results."""
        told = self.ask_one_pool(source, level, guests, **asked)
        return [each["result"] for each in told]

    def ask_one_pool(
        self, source: str, level: str, guests: int, *, together: bool = False, pause: float = 0
    ) -> list[dict[str, Any]]:
        asked = {"source": source, "level": level, "without": []}
        told: list[dict[str, Any]] = self.ask(
            **asked, guests=guests, together=together, pause=pause
        )
        assert [each["outcome"] for each in told] == ["returned"] * guests, told
        return told

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the judge process has ended"
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        shutil.rmtree(self.directory)


def _readable_by_every_user(uid: int) -> list[str]:
    """Return the beginning of a command that runs as this user.

    If Python or this repository are in a closed directory such as /root, the command opens that
    directory in a mount namespace, so that every user can read them.
    """
    if os.geteuid() != 0:
        return []
    bubblewrap = shutil.which("bwrap")
    assert bubblewrap, "these tests need level A: apt-get install bubblewrap"
    line = [bubblewrap, "--dev-bind", "/", "/"]
    for path in sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT}):
        above = [*reversed(path.parents), path]
        closed = next((each for each in above if each.stat().st_mode & 0o005 != 0o005), None)
        if closed is not None:
            line += ["--perms", "0755", "--tmpfs", str(closed)]
            for each in above:
                if each.is_relative_to(closed) and each not in {closed, path}:
                    line += ["--perms", "0755", "--dir", str(each)]
            line += ["--ro-bind", str(path), str(path)]
    if uid:
        line += ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    return line


def _make(uid: str, number: int = 0) -> JudgeProcess:
    first, count = SLOTS if uid == "root" else ORDINARY_UIDS
    own = first + (2 * os.getpid() + number) % count
    if uid == "root":
        if os.geteuid() != 0:
            pytest.skip("only root can test root's guests")
        return JudgeProcess(0, slot=own)
    return JudgeProcess(os.geteuid() or own, slot=0)


@pytest.fixture(scope="module")
def _judges() -> Iterator[dict[str, JudgeProcess]]:
    started: dict[str, JudgeProcess] = {}
    yield started
    for judge in started.values():
        judge.close()


@pytest.fixture(params=["root", "ordinary"])
def judge(request: pytest.FixtureRequest, _judges: dict[str, JudgeProcess]) -> JudgeProcess:
    uid: str = request.param
    if uid not in _judges:
        _judges[uid] = _make(uid)
    return _judges[uid]


@pytest.fixture
def fresh_judge(judge: JudgeProcess) -> Iterator[JudgeProcess]:
    """Return another judge of the same user, which the test can kill."""
    made = _make("ordinary" if judge.uid else "root", 1)
    yield made
    made.close()
