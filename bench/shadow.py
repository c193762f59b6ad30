"""The speed and the memory of `tiltyard shadow` on generated traces.

`python bench/shadow.py TRACES... [--tools FILE]` measures the speed on other traces.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from table import Measured, Row
from tiltyard import GuardrailBase
from tiltyard.bridges.traces.declared_tools import read_tools
from tiltyard.bridges.traces.read import TraceReader
from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.conversation import open_locally
from tiltyard.guardrails.declared import DeclaredGuardrail
from tiltyard.studies.shadow import Contender, Surroundings, shadow
from tiltyard.studies.shadow_counts import Tally

GOAL = 5_000
GROWTH = 1.1
ROUNDS = 3
RUNS = 1_500
CALLS = 7
SMALL, LARGE = 30, 600
"""Megabytes of traces whose memory is compared."""


def write_traces(path: Path, runs: int, result_chars: int) -> None:
    """Write runs of seven calls each as Chat Completions messages."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(runs):
            file.write(json.dumps(_run(number, result_chars)))
            file.write("\n")


def _run(number: int, result_chars: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Pay invoice {number}, please."}]
    for call in range(CALLS):
        line = f"Line {number} of document {call}. "
        document = line * (result_chars // len(line))
        args = {"id": f"{number}-{call}", "amount": call * 1.5, "note": "for the office"}
        function = {"name": f"tool_{call}", "arguments": json.dumps(args)}
        asked = {"id": f"c{call}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        messages.append({"role": "tool", "tool_call_id": f"c{call}", "content": document})
    return {"id": str(number), "messages": messages, "task_done": True}


def play(
    paths: Sequence[Path],
    make: MakeGuardrail = GuardrailBase,
    tools: tuple[Declaration, ...] | None = None,
) -> int:
    """Shadow files with a guardrail; by default, it allows everything. Return the calls."""
    tally = Tally(["it"], len(paths))
    contender = Contender("it", open_locally(make))
    shadow(TraceReader(paths).runs(), [contender], Surroundings(tools), [tally])
    return tally.result().calls


def calls_per_second(
    paths: Sequence[Path],
    make: MakeGuardrail = GuardrailBase,
    tools: tuple[Declaration, ...] | None = None,
) -> float:
    """Return the calls in a second of CPU time, in the fastest round."""
    fastest = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        calls = play(paths, make, tools)
        fastest = max(fastest, calls / (time.process_time() - start))
    return fastest


def peak_megabytes(path: Path) -> float:
    """Return the peak memory of a process that shadows a file."""
    code = (
        f"import sys, resource; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import shadow; "
        f"from pathlib import Path; shadow.play([Path({str(path)!r})]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_shadow() -> Measured:
    with tempfile.TemporaryDirectory(prefix="tiltyard-bench-") as name:
        path = Path(name) / "traces.jsonl"
        write_traces(path, RUNS, 800)
        fastest = calls_per_second([path])
        declared = calls_per_second([path], DeclaredGuardrail)
        peaks = []
        for megabytes in (SMALL, LARGE):
            write_traces(path, megabytes, 1_000_000 // CALLS)
            peaks.append(peak_megabytes(path))
    small, large = peaks
    row = Row(
        f"recorded calls shadowed, one core; memory with {SMALL} and {LARGE} MB of traces",
        "",
        f"{fastest:,.0f} a second of CPU time, {declared:,.0f} with declared; "
        f"{small:.0f} and {large:.0f} MB",
        f"{large / small:.2f} x the memory",
        f">= {GOAL:,} a second, <= {GROWTH} x",
        fastest >= GOAL and large <= small * GROWTH,
    )
    return row, {
        "calls_per_s": fastest,
        "declared_calls_per_s": declared,
        "small_mb": small,
        "large_mb": large,
    }


def sections() -> dict[str, Callable[[], Measured]]:
    return {"shadow": measure_shadow}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure `tiltyard shadow` on traces.")
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--tools", type=Path)
    given = parser.parse_args()
    tools = read_tools(given.tools) if given.tools else None
    for name, make in (("allow-all", GuardrailBase), ("declared", DeclaredGuardrail)):
        first = time.process_time()
        calls = play(given.traces, make, tools)
        first = calls / (time.process_time() - first)
        again = calls_per_second(given.traces, make, tools)
        print(f"{name}: {first:,.0f} calls a second of CPU time, {again:,.0f} in later rounds")


if __name__ == "__main__":
    main()
