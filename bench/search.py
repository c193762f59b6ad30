"""The search and the matches: Go-Explore beside the peer's, and the time of a match."""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable

import kernel
from table import Measured, Row
from tiltyard import AllowAllGuardrail, DataFlowGuardrail, SandboxEnv
from tiltyard.matches.baseline import baseline_rules, run_baseline
from tiltyard.matches.battery import build_battery, find_battery
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.search import Player, explore
from tiltyard.world.fixtures import load_scenario
from tiltyard.world.generate import generate

PEER_INTERACTIONS = 35_000
"""How many interactions the peer makes in the 2,520 seconds of a defense match."""


def compare_go_explore(rounds: int) -> Measured:
    """Let both systems search the peer's fixtures in turns, without a guardrail."""
    kernel.install_peer()
    scenario = load_scenario(kernel.peer_fixtures())
    rules = baseline_rules(MatchSettings(scenario, load_ruleset()))
    peers, ours, calls = [], [], []
    # Warm up: the first evaluation of a query over 20,000 pages is a benchmark of its own.
    explore(SandboxEnv(scenario=scenario, fold=True), rules, ("bench", 0), steps=60_000)
    for _ in range(rounds):
        peer = kernel.ask_peer("go_explore", seconds=4.0)
        peers.append(peer["interactions_per_s"])
        calls.append(peer["calls"])
        env = SandboxEnv(scenario=scenario, guardrail=AllowAllGuardrail(), fold=True)
        start = time.perf_counter()
        found = explore(env, rules, ("bench", 0), steps=60_000)
        ours.append(found.interactions / (time.perf_counter() - start))
        each = found.steps / found.interactions
    ratio = statistics.median(ours) / statistics.median(peers)
    row = Row(
        "Go-Explore, no guardrail, one core",
        f"{statistics.median(peers):,.1f} interactions/s, {calls[-1]:.1f} calls each",
        f"{statistics.median(ours):,.0f} interactions/s, {each:.1f} calls each",
        f"{ratio:,.0f} x",
        ">= 1000 x",
        ratio >= 1000,
    )
    return row, {"peer": peers, "ours": ours, "ratio": ratio}


def measure_cell() -> Measured:
    """Measure the memory of a search per cell, including kept states."""
    rules = baseline_rules(MatchSettings(generate(123), load_ruleset()))
    env = SandboxEnv(guardrail=AllowAllGuardrail(), fold=True)
    explore(env, rules, ("bench",), steps=60_000)
    gc.collect()
    tracemalloc.start()
    player = Player(env, rules)
    found = explore(env, rules, ("bench",), steps=60_000, players=player)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    each = kept / len(found.archive)
    del player
    row = Row(
        "memory of a search for each archived cell",
        "1.4 MB",
        f"{each:,.0f} bytes, {len(found.archive):,} cells",
        "",
        "<= 2 KB",
        each <= 2048,
    )
    return row, {"bytes": each, "cells": len(found.archive)}


def measure_match() -> Measured:
    """Play default defense matches in this process, with a stored battery."""
    scenario, ruleset = generate(123), load_ruleset()
    find_battery(MatchSettings(scenario, ruleset).in_new_words())
    seconds = {}
    for make in (AllowAllGuardrail, DataFlowGuardrail):
        start = time.perf_counter()
        match = play_defense(MatchSettings(scenario, ruleset), make)
        seconds[make.__name__] = time.perf_counter() - start
    worst = max(seconds.values())
    row = Row(
        "a whole default defense match in process, one core, with a stored battery",
        "",
        f"{worst:.1f} s at most, {match.exploration.interactions:,} interactions",
        "",
        "< 10 s",
        worst < 10,
    )
    return row, seconds


def measure_battery() -> Measured:
    """Build the battery of the public world, as an organizer does once for each hidden world."""
    settings = MatchSettings(generate(123), load_ruleset())
    start = time.perf_counter()
    battery = build_battery(settings)
    seconds = time.perf_counter() - start
    row = Row(
        "the battery of a world, built once and stored",
        "",
        f"{seconds:.0f} s, {battery.steps:,} steps, {len(battery.chains)} chains",
        "",
        "",
        met=None,
    )
    return row, {"seconds": seconds}


def measure_interactions() -> Measured:
    """Make as many interactions as the peer makes in its time limit."""
    scenario, ruleset = generate(123), load_ruleset()
    start = time.perf_counter()
    found = run_baseline(
        MatchSettings(scenario, ruleset, steps=PEER_INTERACTIONS * 3 // 2), AllowAllGuardrail()
    )
    seconds = (time.perf_counter() - start) * PEER_INTERACTIONS / found.interactions
    row = Row(
        "the peer's interactions of a whole match",
        "2,520 s",
        f"{seconds:.1f} s for {PEER_INTERACTIONS:,}",
        "",
        "< 5 s",
        seconds < 5,
    )
    return row, {"seconds": seconds}


def sections(rounds: int = 3) -> dict[str, Callable[[], Measured]]:
    return {
        "go_explore": lambda: compare_go_explore(rounds),
        "cell": measure_cell,
        "match": measure_match,
        "battery": measure_battery,
        "interactions": measure_interactions,
    }
