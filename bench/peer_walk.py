"""The peer's side of the benchmark: runs inside the peer's own environment, prints JSON.

Usage: python peer_walk.py TASK, with the task as JSON on standard input.
"""

import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aicomp_sdk
from aicomp_sdk.agents import build_agent
from aicomp_sdk.attacks.baselines.attacker_goexplore import AttackAlgorithm
from aicomp_sdk.attacks.contracts import AttackRunConfig
from aicomp_sdk.core.env.sandbox import SandboxEnv
from aicomp_sdk.guardrails.base import GuardrailBase

FIXTURES = Path(aicomp_sdk.__file__).parent / "fixtures"


def make_env() -> Any:
    env = SandboxEnv(
        seed=123,
        fixtures_dir=FIXTURES,
        agent=build_agent("deterministic"),
        guardrail=GuardrailBase(),
    )
    env.reset()
    return env


def walk(messages: list[str], interactions: int, seed: int) -> dict[str, float]:
    """Restore a snapshot, send a message, take a snapshot."""
    rng = random.Random(seed)
    env = make_env()
    kept = [env.snapshot()]
    calls = returned = 0
    start = time.perf_counter()
    for _ in range(interactions):
        env.restore(kept[int(rng.random() * len(kept))])
        before = len(env.trace.tool_events)
        env.interact(rng.choice(messages))
        kept.append(env.snapshot())
        for event in env.trace.tool_events[before:]:
            calls += 1
            returned += len(str(event.output).encode())
    seconds = time.perf_counter() - start
    return {
        "interactions_per_s": interactions / seconds,
        "calls_per_s": calls / seconds,
        "calls": calls / interactions,
        "bytes": returned / interactions,
    }


def go_explore(seconds: float) -> dict[str, float]:
    """Run the peer's own Go-Explore for some seconds, and count its interactions."""
    env = make_env()
    interactions = calls = 0
    interact = env.interact

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal interactions, calls
        before = len(env.trace.tool_events)
        answer = interact(*args, **kwargs)
        interactions += 1
        calls += len(env.trace.tool_events) - before
        return answer

    env.interact = counted
    start = time.perf_counter()
    AttackAlgorithm({}).run(env, AttackRunConfig(time_budget_s=seconds))
    spent = time.perf_counter() - start
    return {"interactions_per_s": interactions / spent, "calls": calls / max(1, interactions)}


def pairs(count: int) -> dict[str, float]:
    """Only snapshot and restore."""
    env = make_env()
    env.interact("read file config.txt")
    start = time.perf_counter()
    for _ in range(count):
        env.restore(env.snapshot())
    return {"pairs_per_s": count / (time.perf_counter() - start)}


def memory(messages: list[str], interactions: int) -> dict[str, float]:
    env = make_env()
    kept = [env.snapshot()]
    rng = random.Random(1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(interactions):
        env.restore(kept[int(rng.random() * len(kept))])
        env.interact(rng.choice(messages))
        kept.append(env.snapshot())
    after = tracemalloc.get_traced_memory()[0]
    return {"bytes_per_snapshot": (after - before) / interactions}


def load() -> dict[str, float]:
    start = time.perf_counter()
    make_env()
    return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    task = json.load(sys.stdin)
    verbs: dict[str, Callable[..., dict[str, float]]] = {
        "walk": walk,
        "go_explore": go_explore,
        "pairs": pairs,
        "memory": memory,
        "load": load,
    }
    print(json.dumps(verbs[task.pop("verb")](**task)))
