"""The kernel's speed and memory, beside the public system of the same design.

Both systems run on the peer's packaged fixtures, with the same messages and the same random walk
with restore. Only the ratios matter.
"""

import gc
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import Measured, Row
from tiltyard import AllowAllGuardrail, Context, Decision, GuardrailBase, SandboxEnv
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

ROOT = Path(__file__).parent.parent
PEER_VENV = ROOT / ".venv-peer"
PEER_PYTHON = PEER_VENV / "bin" / "python"
PEER_PACKAGES = (("--no-deps", "aicomp-sdk==3.1.2"), ("gymnasium<1", "openai"))

SINGLE = [
    "search weekly metrics",
    *(f"open page_{number}" for number in (0, 1, 2, 3, 4, 7, 15, 40, 41, 500, 7000, 19000)),
    *(f"read email email_{number}" for number in (0, 1, 2, 5, 800)),
    "read secret",
    *(f"read file {name}.txt" for name in ("config", "install", "package", "readme", "note")),
    "read file report.txt",
    "write file note.txt",
    "delete secret",
    "run echo",
    "upload report",
    "post data",
    "send email",
]
"""Messages of one clause, in the proportions of the peer's prompt bank."""


def _eight_of(clauses: list[str]) -> list[str]:
    """Return messages of eight clauses, one starting with each clause."""
    rows = clauses * 8
    return [", then ".join(rows[at : at + 8]) for at in range(len(clauses))]


EIGHT = [
    *_eight_of([clause for clause in SINGLE if clause.startswith("read file")]),
    *_eight_of([f"open page_{number}" for number in (0, 1, 7, 40, 41, 500, 7000, 19000)]),
    *_eight_of([f"read email email_{number}" for number in (0, 5, 800)]),
    *_eight_of(["write file note.txt"]),
    *_eight_of(["run `echo hello`"]),
    *_eight_of(["post data"]),
]
"""Messages of eight clauses, because the peer's agent always makes eight calls."""


class Growing(GuardrailBase):
    """A guardrail that remembers every call."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_args, context
        self.seen.append(tool_name)
        return Decision.allow()


def ask_peer(verb: str, **task: Any) -> dict[str, float]:
    done = subprocess.run(
        [PEER_PYTHON, Path(__file__).with_name("peer_walk.py")],
        input=json.dumps({"verb": verb, **task}),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def install_peer() -> None:
    if (PEER_VENV / ".done").exists():
        return
    print("Installing the peer into .venv-peer ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", PEER_VENV], check=True)
    for packages in PEER_PACKAGES:
        subprocess.run(
            [PEER_PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    (PEER_VENV / ".done").touch()


def peer_fixtures() -> Path:
    code = "import aicomp_sdk, os; print(os.path.dirname(aicomp_sdk.__file__))"
    done = subprocess.run([PEER_PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()) / "fixtures"


def walk(
    scenario: Scenario, messages: list[str], interactions: int, guardrail: GuardrailBase, seed: int
) -> dict[str, float]:
    """Restore a snapshot, send a message, take a snapshot."""
    env = SandboxEnv(scenario=scenario, guardrail=guardrail)
    for message in messages:
        env.interact(message)
    env.reset()
    rng = random.Random(seed)
    kept = [env.snapshot()]
    start = time.perf_counter()
    for _ in range(interactions):
        env.restore(kept[int(rng.random() * len(kept))])
        env.interact(rng.choice(messages))
        kept.append(env.snapshot())
    seconds = time.perf_counter() - start
    calls = returned = 0
    for snapshot in kept[1:]:
        env.restore(snapshot)
        for event in env.trace.turn_events:
            calls += 1
            returned += len(event.result.output.string.encode())
    return {
        "interactions_per_s": interactions / seconds,
        "calls_per_s": calls / seconds,
        "calls": calls / interactions,
        "bytes": returned / interactions,
    }


def compare_walks(name: str, scenario: Scenario, messages: list[str], rounds: int) -> Measured:
    """Alternate between the two systems, so that noise affects both."""
    peers, ours = [], []
    for seed in range(rounds):
        peers.append(ask_peer("walk", messages=messages, interactions=40, seed=seed))
        ours.append(walk(scenario, messages, 20_000, AllowAllGuardrail(), seed))
    peer = {key: statistics.median(run[key] for run in peers) for key in peers[0]}
    own = {key: statistics.median(run[key] for run in ours) for key in ours[0]}
    fewer = own["calls"] < peer["calls"] or own["bytes"] < peer["bytes"]
    unit = "calls_per_s" if fewer else "interactions_per_s"
    ratio = own[unit] / peer[unit]

    def describe(run: dict[str, float]) -> str:
        return (
            f"{run['interactions_per_s']:,.0f} interactions/s, {run['calls']:.1f} calls and "
            f"{run['bytes']:,.0f} bytes each"
        )

    by = "by calls" if fewer else "by interactions"
    row = Row(
        name, describe(peer), describe(own), f"{ratio:,.0f} x {by}", ">= 1000 x", ratio >= 1000
    )
    return row, {"peer": peer, "ours": own, "unit": unit, "ratio": ratio}


def rate(work: Callable[[], object], count: int, repeat: int = 5) -> float:
    """Return the best rate of a piece of work, in runs per second."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, time.perf_counter() - start)
    return count / best


def compare_pairs(scenario: Scenario) -> Measured:
    env = SandboxEnv(scenario=scenario)
    env.interact("read file config.txt")
    peer = ask_peer("pairs", count=40)["pairs_per_s"]
    own = rate(lambda: env.restore(env.snapshot()), 100_000)
    ratio = own / peer
    row = Row(
        "snapshot and restore",
        f"{peer:,.1f} pairs/s",
        f"{own:,.0f} pairs/s",
        f"{ratio:,.0f} x",
        ">= 10,000 x",
        ratio >= 10_000,
    )
    return row, {"peer": peer, "ours": own, "ratio": ratio}


def compare_memory(scenario: Scenario) -> Measured:
    env = SandboxEnv(scenario=scenario)
    for message in SINGLE:
        env.interact(message)
    env.reset()
    rng = random.Random(1)
    kept = [env.snapshot()]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    count = 10_000
    for _ in range(count):
        env.restore(kept[int(rng.random() * len(kept))])
        env.interact(rng.choice(SINGLE))
        kept.append(env.snapshot())
    own = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    peer = ask_peer("memory", messages=SINGLE, interactions=40)["bytes_per_snapshot"]
    row = Row(
        "memory for each kept snapshot",
        f"{peer:,.0f} bytes",
        f"{own:,.0f} bytes",
        f"1/{peer / own:,.0f}",
        "<= 2,048 bytes",
        own <= 2048,
    )
    return row, {"peer": peer, "ours": own}


def step_cost(env: SandboxEnv, message: str) -> float:
    snapshot = env.snapshot()

    def step() -> None:
        env.restore(snapshot)
        env.interact(message)

    step()
    return 1 / rate(step, 2000)


def measure_world_size() -> Measured:
    pages = 20_000
    small, large = generate(9, pages=240), generate(9, pages=pages)
    message = "open welcome, then read file readme, then search howto, then write file report"
    costs = [step_cost(SandboxEnv(scenario=scenario), message) for scenario in (small, large)]
    ratio = costs[1] / costs[0]
    row = Row(
        f"a step's cost with {pages:,} pages against {len(small.pages)}",
        "",
        f"{costs[1] * 1e6:.1f} us against {costs[0] * 1e6:.1f} us",
        f"{ratio:.2f} x",
        "<= 1.3 x",
        ratio <= 1.3,
    )
    return row, {"small": costs[0], "large": costs[1], "ratio": ratio}


def measure_depth(scenario: Scenario) -> Measured:
    env = SandboxEnv(scenario=scenario)
    message = "read file config.txt, then write file note.txt"
    env.interact(message)
    shallow = step_cost(env, message)
    for _ in range(19):
        env.interact(message)
    deep = step_cost(env, message)
    ratio = deep / shallow
    row = Row(
        "a step's cost at chain depth 20 against depth 1",
        "",
        f"{deep * 1e6:.1f} us against {shallow * 1e6:.1f} us",
        f"{ratio:.2f} x",
        "<= 1.5 x",
        ratio <= 1.5,
    )
    return row, {"shallow": shallow, "deep": deep, "ratio": ratio}


def measure_growing(scenario: Scenario) -> Measured:
    plain = walk(scenario, SINGLE, 20_000, AllowAllGuardrail(), 1)
    grown = walk(scenario, SINGLE, 20_000, Growing(), 1)
    share = plain["interactions_per_s"] / grown["interactions_per_s"]
    row = Row(
        "with a guardrail that keeps a growing list",
        "",
        f"{grown['interactions_per_s']:,.0f} interactions/s",
        f"{share:.2f} x the time of allow-all",
        "",
        None,
    )
    return row, {"ours": grown, "share": share}


def measure_query(scenario: Scenario) -> Measured:
    """Evaluate new queries over the peer's pages."""
    queries = [f"weekly metrics {number}" for number in range(50)]
    env = SandboxEnv(scenario=scenario)
    env.interact("search anything")
    start = time.perf_counter()
    for query in queries:
        env.interact(f"search {query}")
    first = (time.perf_counter() - start) / len(queries)
    again = 1 / rate(lambda: env.interact(f"search {queries[0]}"), 2000)
    row = Row(
        "a query's first evaluation, and every other",
        "",
        f"{first * 1e3:.2f} ms, then {again * 1e6:.1f} us",
        "",
        "",
        None,
    )
    return row, {"first": first, "again": again}


def measure_load(fixtures: Path) -> Measured:
    peer = ask_peer("load")["seconds"]
    with tempfile.TemporaryDirectory() as cache:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            scenario = load_scenario(fixtures, cache=Path(cache))
            SandboxEnv(scenario=scenario)
            times.append(time.perf_counter() - start)
    cold, warm = times[0], min(times[1:])
    row = Row(
        f"loading {len(scenario.pages):,} pages, search index included",
        f"{peer:.2f} s (no index)",
        f"{cold:.2f} s, from the cache {warm:.2f} s",
        "",
        "< 2 s, < 0.2 s",
        cold < 2 and warm < 0.2,
    )
    return row, {"cold": cold, "warm": warm, "peer": peer}


def measure_import() -> Measured:
    def start_up(code: str) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    cost = start_up("import tiltyard") - start_up("pass")
    row = Row("import tiltyard", "", f"{cost * 1e3:.0f} ms", "", "< 150 ms", cost < 0.15)
    return row, {"seconds": cost}


def measure_install() -> Measured:
    with tempfile.TemporaryDirectory() as target:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", target, ROOT], check=True, stderr=subprocess.DEVNULL)
        size = sum(f.stat().st_size for f in Path(target).rglob("*") if f.is_file())
    row = Row(
        "core install, dependencies included",
        "",
        f"{size / 1e6:.1f} MB",
        "",
        "< 30 MB",
        size < 30e6,
    )
    return row, {"bytes": size}


def sections(rounds: int) -> dict[str, Callable[[], Measured]]:
    """Return the benchmarks by name."""
    install_peer()
    fixtures = peer_fixtures()
    scenario = load_scenario(fixtures)
    return {
        "eight": lambda: compare_walks(
            "random walk, eight clauses a message", scenario, EIGHT, rounds
        ),
        "single": lambda: compare_walks(
            "random walk, one clause a message", scenario, SINGLE, rounds
        ),
        "pairs": lambda: compare_pairs(scenario),
        "memory": lambda: compare_memory(scenario),
        "growing": lambda: measure_growing(scenario),
        "world_size": measure_world_size,
        "depth": lambda: measure_depth(scenario),
        "query": lambda: measure_query(scenario),
        "load": lambda: measure_load(fixtures),
        "import": measure_import,
        "install": measure_install,
    }
