"""The guard in front of a real MCP server: what it adds to a call, its memory, and its start."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from jail import GUARDRAIL
from table import Measured, Row

ROOT = Path(__file__).parent.parent
SERVER = (
    ROOT / ".venv-bridges/node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
)
CALLS = 500
STARTS = 9
MIB = 1 << 20


class Connection:
    """A client of a server, directly or through a guard."""

    def __init__(self, command: list[str]) -> None:
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._number = 0
        self.pid = self._process.pid
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.request("initialize", params | {"clientInfo": {"name": "bench", "version": "1"}})
        self.ready = time.perf_counter() - start
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request("tools/list", {})
        self.declared = time.perf_counter() - start

    def _send(self, body: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(body).encode() + b"\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["id"] == self._number
        return answer

    def call(self, path: str) -> float:
        start = time.perf_counter()
        params = {"name": "read_text_file", "arguments": {"path": path}}
        answer = self.request("tools/call", params)
        assert not answer["result"].get("isError"), answer
        return time.perf_counter() - start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def commands() -> Iterator[tuple[dict[str, list[str]], str]]:
    """Yield the ways to the server, and a file that it can read."""
    node = shutil.which("node")
    if node is None or not SERVER.exists():
        sys.exit("the guard's benchmark needs node and server-filesystem; run `make bridges` once")
    with tempfile.TemporaryDirectory(prefix="tiltyard-bench-") as name:
        place = Path(name)
        note = place / "note.txt"
        note.write_text("a note\n", encoding="utf-8")
        own = place / "guardrail.py"
        own.write_text(GUARDRAIL, encoding="utf-8")
        server = [node, str(SERVER), name]
        guard = [str(Path(sys.executable).with_name("tiltyard")), "guard"]
        yield (
            {
                "direct": server,
                "in process": [*guard, "--", *server],
                "jailed": [*guard, "--guardrail", str(own), "--", *server],
            },
            str(note),
        )


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / MIB


def _decider_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return next(
        int(child)
        for child in children
        if b"guard.decider" in Path(f"/proc/{child}/cmdline").read_bytes()
    )


def measure_calls(kind: str, goal: float) -> Measured:
    """Call the same tool directly and through a guard, in turns."""
    with commands() as (ways, note), ExitStack() as stack:
        direct = stack.enter_context(Connection(ways["direct"]))
        guarded = stack.enter_context(Connection(ways[kind]))
        for _ in range(20):
            direct.call(note)
            guarded.call(note)
        times = [(direct.call(note), guarded.call(note)) for _ in range(CALLS)]
        memory, decider = _memory(guarded.pid), _memory(_decider_of(guarded.pid))
    plain = statistics.median(one for one, _ in times) * 1e3
    through = statistics.median(other for _, other in times) * 1e3
    more = through - plain
    row = Row(
        f"a guarded MCP call, {kind}, p50 of {CALLS}, beside the direct call",
        f"{plain:.2f} ms",
        f"{through:.2f} ms",
        f"+{more:.2f} ms",
        f"<= +{goal} ms",
        more <= goal,
    )
    found = {"direct_ms": plain, "guarded_ms": through, "more_ms": more}
    return row, found | {"guard_mib": memory, "decider_mib": decider}


def measure_memory() -> Measured:
    with commands() as (ways, note), Connection(ways["in process"]) as guarded:
        for _ in range(CALLS):
            guarded.call(note)
        memory, decider = _memory(guarded.pid), _memory(_decider_of(guarded.pid))
    row = Row(
        f"resident memory of a guard after {CALLS} calls",
        "",
        f"{memory:.0f} MiB, its decider {decider:.0f} MiB",
        "",
        "< 40 MB",
        memory * MIB < 40e6,
    )
    return row, {"guard_mib": memory, "decider_mib": decider}


def measure_start() -> Measured:
    """Start the server directly and through a guard, in turns."""
    ready: dict[str, list[float]] = {"direct": [], "in process": []}
    declared: dict[str, list[float]] = {"direct": [], "in process": []}
    with commands() as (ways, _):
        for _ in range(STARTS):
            for way, times in ready.items():
                with Connection(ways[way]) as connection:
                    times.append(connection.ready)
                    declared[way].append(connection.declared)
    direct, guarded = (statistics.median(times) for times in ready.values())
    tools = statistics.median(declared["in process"]) - statistics.median(declared["direct"])
    row = Row(
        "the start of a guarded server, beside the direct start",
        f"{direct:.2f} s",
        f"{guarded:.2f} s, with the list of tools +{tools:.2f} s",
        f"+{guarded - direct:.2f} s",
        "<= +0.5 s",
        guarded - direct <= 0.5,
    )
    return row, {"direct_s": direct, "guarded_s": guarded, "tools_more_s": tools}


def sections() -> dict[str, Callable[[], Measured]]:
    return {
        "guard": lambda: measure_calls("in process", 0.5),
        "guard-jailed": lambda: measure_calls("jailed", 1.5),
        "guard-memory": measure_memory,
        "guard-start": measure_start,
    }
