"""Starting and ending guests: their limits, their output, and that they leave nothing behind."""

import os
import secrets
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tiltyard.isolation.confinement.selfjail import LAYERS
from tiltyard.isolation.host.fork_server import start_guest
from tiltyard.isolation.host.limits import JailError, Level
from tiltyard.isolation.host.slots import SLOTS

LEVELS = pytest.mark.parametrize("level", ["A", "B"])
TARGET = "tiltyard.isolation.guest.probe_script"


@LEVELS
def test_all_layers_are_in_force(level: str, judge: Any) -> None:
    told = judge.run("def probe(given): return True", level)
    expected = [layer for layer in LAYERS if layer != "uid" or judge.uid == 0]
    assert told["layers"] == expected


@LEVELS
def test_guest_that_ignores_signals_is_killed(level: str, judge: Any) -> None:
    source = (
        "import signal, threading, time\n"
        "def probe(given):\n"
        "    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "        try: signal.signal(number, signal.SIG_IGN)\n"
        "        except OSError: pass\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    time.sleep(60)\n"
    )
    told = judge.run(source, level, seconds=0.3, ask_first=True)
    assert told["outcome"] == "deadline"
    assert told["seconds"] < 5
    assert not told["survivors"]


@LEVELS
def test_long_output_keeps_its_beginning_and_its_end(level: str, judge: Any) -> None:
    source = (
        "import sys\n"
        "def probe(given):\n"
        "    print('the beginning')\n"
        "    for number in range(100_000):\n"
        "        print('a line of the flood, one of very many', number)\n"
        "    print('an error', file=sys.stderr)\n"
        "    print('the end \\x1b[2J')\n"
        "    return True\n"
    )
    told = judge.run(source, level)
    assert told["result"] is True
    assert (1 << 19) < told["size"] <= (1 << 20) + 200
    assert "an error\nthe end \ufffd[2J\n" in told["output"]


@LEVELS
def test_direct_writes_to_the_output_meet_the_file_size_limit(level: str, judge: Any) -> None:
    source = (
        "import os\n"
        "def probe(given):\n"
        "    for _ in range(64):\n"
        "        os.write(1, b'x' * (1 << 20))\n"
    )
    told = judge.run(source, level)
    assert told["size"] <= (1 << 20) + 200
    assert told["outcome"] in {"silent", "EFBIG"}


@pytest.mark.parametrize(
    ("source", "outcomes"),
    [
        ("import os\ndef probe(given): os._exit(0)", {"silent"}),
        ("import os\ndef probe(given): os.close(1); os._exit(159)", {"SIGSYS", "silent"}),
        ("def probe(given): raise SystemExit(0)", {"SystemExit"}),
        # SIGABRT does not end the first process of a namespace, so it crashes after that.
        ("import os\ndef probe(given): os.abort()", {"SIGABRT", "SIGSEGV"}),
        (
            "import sys\ndef probe(given):\n    sys.setrecursionlimit(1 << 30)\n    probe(given)",
            {"MemoryError", "RecursionError", "SIGSEGV", "deadline"},
        ),
        (
            "def probe(given):\n  for _ in range(10**5): given = [given]\n  return repr(given)",
            {"RecursionError", "MemoryError", "SIGSEGV"},
        ),
        ("import ctypes\ndef probe(given): ctypes.string_at(1)", {"SIGSEGV"}),
    ],
)
@LEVELS
def test_judge_survives_every_end_of_a_guest(
    level: str, judge: Any, source: str, outcomes: set[str]
) -> None:
    told = judge.run(source, level, seconds=1.5)
    assert told["outcome"] in outcomes, told
    assert not told["survivors"]
    assert told["descriptors_leaked"] == 0
    assert judge.run("def probe(given): return 1", level)["result"] == 1


@LEVELS
def test_only_allowed_packages_can_be_imported(level: str, judge: Any) -> None:
    source = (
        "def probe(given):\n"
        "    found = []\n"
        "    for name in ('tiltyard', 'msgspec', 'sortedcontainers', 'typer', 'pip', 'json'):\n"
        "        try: __import__(name)\n"
        "        except ImportError: pass\n"
        "        else: found.append(name)\n"
        "    return found\n"
    )
    assert judge.run(source, level)["result"] == ["tiltyard", "msgspec", "json"]
    more = judge.run(source, level, packages=["sortedcontainers"])
    assert more["result"] == ["tiltyard", "msgspec", "sortedcontainers", "json"]


@LEVELS
def test_public_names_can_be_imported_in_the_jail(level: str, judge: Any) -> None:
    source = (
        "from tiltyard import Decision, GuardrailBase, __version__\n"
        "import tiltyard.guardrails\n"
        "def probe(given):\n"
        "    rail = tiltyard.guardrails.AllowAllGuardrail()\n"
        "    return rail.decide('fs.read', {}, None) == Decision.allow()\n"
    )
    assert judge.run(source, level)["result"] is True


@LEVELS
def test_all_guests_see_the_same_process_state(level: str, judge: Any) -> None:
    source = (
        "import os, sys\n"
        "def probe(given):\n"
        "    return [hash('tiltyard'), sys.version, dict(os.environ), sys.argv[1:] != [],\n"
        "        sys.flags.dont_write_bytecode, sys.flags.safe_path, os.cpu_count()]\n"
    )
    first, second = judge.run(source, level)["result"], judge.run(source, level)["result"]
    assert first == second
    assert first[1] == sys.version
    assert set(first[2]) == {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}


@LEVELS
@pytest.mark.parametrize(
    ("moment", "without"),
    [
        ("at once", ()),
        ("once ready", ()),
        ("once ready", ("die-with-parent", "death-signal")),
    ],
)
def test_guest_dies_with_its_judge(
    level: str, moment: str, without: tuple[str, ...], fresh_judge: Any
) -> None:
    started = fresh_judge.ask(level=level, without=without, linger=moment)
    os.kill(started["pid"], 9)
    fresh_judge.process.wait(10)
    until = time.monotonic() + (0.3 if without else 5)
    while _runs(started["token"]) and time.monotonic() < until:
        time.sleep(0.02)
    survived = _runs(started["token"])
    for pid in _runs(started["token"]):
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    assert bool(survived) == bool(without)


@LEVELS
def test_guest_killed_at_any_moment_leaves_nothing(level: str, judge: Any) -> None:
    for milliseconds in (0, 1, 2, 4, 8, 16, 32, 64):
        told = judge.run("while True: pass", level, seconds=milliseconds / 1000)
        assert told["outcome"] == "deadline"
        assert not told["survivors"]
        assert told["descriptors_leaked"] == 0


def test_forked_copy_does_not_kill_the_guest(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with start_guest(TARGET, level=Level.A, submission=tmp_path) as guest:
        copy = os.fork()
        if copy == 0:
            guest.kill()
            os._exit(0)
        os.waitpid(copy, 0)
        assert not guest.wait(0.3)
    assert guest.wait(0)


@LEVELS
def test_judge_killed_at_any_moment_leaves_nothing(level: str, tmp_path: Path) -> None:
    """The critical moment is before bubblewrap has asked the kernel to die with its parent."""
    tmp_path.chmod(0o755)
    for milliseconds in range(12):
        token = f"killed-{secrets.token_hex(8)}"
        source = (
            "import sys\nfrom pathlib import Path\n"
            "from tiltyard.isolation.host.fork_server import ForkServer\n"
            "from tiltyard.isolation.host.limits import Level\nprint(flush=True)\n"
            f"fork_server = ForkServer({TARGET!r}, [{token!r}], level=Level.{level})\n"
            "sys.stdin.read()\n"
        )
        judge = subprocess.Popen(
            [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert judge.stdout is not None
        judge.stdout.readline()
        time.sleep(milliseconds / 1000)
        judge.kill()
        judge.communicate()
        assert _ends(token), _runs(token)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's guests run as other users")
def test_level_b_names_the_directory_that_other_users_cannot_read(tmp_path: Path) -> None:
    closed = tmp_path / "closed" / "submission"
    closed.mkdir(parents=True)
    closed.parent.chmod(0o700)
    with pytest.raises(JailError, match=r"another user, who cannot read .*is closed to others"):
        start_guest(TARGET, level=Level.B, submission=closed)


def _ends(token: str, looks: int = 6) -> bool:
    """Return whether all processes end.

    A process between fork and exec has no name, so look several times.
    """
    until = time.monotonic() + 10
    clear = 0
    while clear < looks and time.monotonic() < until:
        clear = 0 if _runs(token) else clear + 1
        time.sleep(0.03)
    return clear == looks


def _runs(token: str) -> dict[int, bytes]:
    """Return all processes of a guest: bubblewrap, the fork server, the guest."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                if token.encode() in line:
                    found[int(entry.name)] = line.split(b"\0")[0]
    return found


def test_invalid_settings_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(JailError, match="use Linux"):
        start_guest(TARGET, level=Level.C)
    with pytest.raises(JailError, match="slot"):
        start_guest(TARGET, level=Level.A, slot=SLOTS)
    with pytest.raises(JailError, match="unknown layer 'walls'"):
        start_guest(TARGET, level=Level.A, without=frozenset({"walls"}))
    with pytest.raises(JailError, match="pip install nowhere"):
        start_guest(TARGET, level=Level.A, packages=["nowhere"])
    with pytest.raises(JailError, match="part of Python"):
        start_guest(TARGET, level=Level.A, packages=["sys"])
    with pytest.raises(FileNotFoundError):
        start_guest(TARGET, level=Level.A, submission=tmp_path / "nothing")


def test_guests_start_from_the_main_thread_only() -> None:
    refused: list[str] = []

    def attempt() -> None:
        try:
            start_guest(TARGET, level=Level.A)
        except JailError as error:
            refused.append(str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert refused == ["start guests from the main thread"]


@pytest.mark.parametrize(
    ("before", "refused"),
    [
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(1,)).start()\n",
            "has started a thread",
        ),
        (
            "import tiltyard.isolation.confinement.landlock as own\nown.landlock_abi = lambda: 0\n",
            "cannot apply the jail's layer 'landlock': this kernel has no Landlock",
        ),
        (
            "import os\nreal = os.open\nos.open = lambda path, *a: path == '/' or real(path, *a)\n",
            "the jail's layer 'landlock' is applied, but has no effect",
        ),
    ],
)
def test_layer_that_cannot_be_applied_is_an_error(before: str, refused: str) -> None:
    source = (
        f"{before}\nfrom tiltyard.isolation.confinement.selfjail import LAYERS, confine\n"
        "only = frozenset(LAYERS) - {'landlock', 'no-new-privileges'}\n"
        "confine({}, [], None, None, without=only)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert refused in done.stderr
