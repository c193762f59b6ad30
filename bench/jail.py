"""The jail: the cost of a guardrail or an attack in another process."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from table import Measured, Row
from tiltyard import AttackRunConfig, SandboxEnv
from tiltyard.contracts.tracks import Part
from tiltyard.isolation.host.failures import Phase
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.wire.frames import Begin, Decide, Enter
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.submissions import Submission, open_submission
from tiltyard.world.generate import generate

GUARDRAIL = """
from tiltyard import Decision

class Guardrail:
    \"\"\"Reads its context and keeps state.\"\"\"

    def __init__(self):
        self.tainted = False
        self.calls = 0

    def decide(self, tool_name, tool_args, context):
        self.calls += 1
        named = any(str(value)[:20] in context.last_user for value in tool_args.values())
        if self.tainted and context.side_effect in ("SHARE", "WRITE", "EXEC") and not named:
            return Decision.deny("tainted by " + ",".join(context.recent_sources))
        return Decision.allow()

    def observe(self, tool_name, tool_args, result):
        self.tainted = self.tainted or result.source in ("web", "email")
"""
ATTACK = """
class AttackAlgorithm:
    def run(self, env, config):
        while env.steps_left:
            env.interact("read file readme")
        return []
"""
ATTACK_STEPS = 10_000
NEVER_RESETTING = """
import aicomp_sdk

class AttackAlgorithm:
    def run(self, env, config):
        for messages in (500, 2000):
            env.reset()
            for _ in range(messages):
                env.interact("read file readme")
                env.export_trace_dict()
        env.reset()
        return []
"""
SEARCHING = """
from tiltyard import AttackCandidate

class AttackAlgorithm:
    def run(self, env, config):
        number, kept = 0, [env.snapshot()]
        while env.steps_left:
            env.restore(kept[number % len(kept)])
            env.interact(f"run echo {number}")
            if number % 4 == 0:
                kept.append(env.snapshot())
            number += 1
        return [AttackCandidate(tuple(env.trace.user_messages[-9:]))]
"""
SEARCH_STEPS = 6_000
MATCHES = 5


@contextmanager
def guest_pool(part: Part, source: str) -> Iterator[GuestPool]:
    with tempfile.TemporaryDirectory(prefix="tiltyard-bench-") as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "source").mkdir()
        (root / "source" / f"{part}.py").write_text(source, encoding="utf-8")
        submission: Submission = open_submission(root / "source", root / "opened")
        with GuestPool(submission, part) as made:
            yield made


def measure_match() -> Measured:
    """Play the same default match in this process and with a jailed guardrail, in turns.

    Each match is played several times, because the machine may be busy with other work.
    """
    scenario, ruleset = generate(123), load_ruleset()
    names: dict[str, Any] = {}
    exec(GUARDRAIL, names)  # noqa: S102 - this file's own text
    outside, inside = [], []
    for _ in range(MATCHES):
        start = time.perf_counter()
        plain = play_defense(MatchSettings(scenario, ruleset), names["Guardrail"])
        outside.append(time.perf_counter() - start)
        with guest_pool("guardrail", GUARDRAIL) as guests:
            start = time.perf_counter()
            jailed = play_defense(MatchSettings(scenario, ruleset), guests.guardrail)
            inside.append(time.perf_counter() - start)
        assert jailed.digest == plain.digest
    in_process, in_jail = statistics.median(outside), statistics.median(inside)
    ratio = in_jail / in_process
    row = Row(
        "a default defense match with the guardrail jailed, same digest",
        "",
        f"{in_jail:.1f} s, {in_process:.1f} s in process",
        f"{ratio:.1f} x",
        "<= 3 x",
        ratio <= 3,
    )
    return row, {"in_process": in_process, "in_jail": in_jail, "ratio": ratio}


def measure_decide() -> Measured:
    with guest_pool("guardrail", GUARDRAIL) as guests:
        session = guests.open()
        times = []
        for _ in range(5_000):
            frame = Decide([Enter(0), Begin("run echo")], "shell.run", {"cmd": "echo"})
            start = time.perf_counter()
            session.ask(frame, Phase.DECIDE, "shell.run")
            times.append(time.perf_counter() - start)
    median = statistics.median(times) * 1e6
    row = Row("a jailed decision, median", "", f"{median:.0f} us", "", "< 40 us", median < 40)
    return row, {"microseconds": median}


def measure_start() -> Measured:
    times = []
    for _ in range(8):
        with guest_pool("guardrail", GUARDRAIL) as guests:
            start = time.perf_counter()
            guests.open()
            times.append(time.perf_counter() - start)
    median = statistics.median(times) * 1e3
    row = Row(
        "a guest's cold start, submission loaded",
        "",
        f"{median:.0f} ms",
        "",
        "< 250 ms",
        median < 250,
    )
    return row, {"milliseconds": median}


def measure_attack() -> Measured:
    env = SandboxEnv(max_steps=ATTACK_STEPS)
    with guest_pool("attack", ATTACK) as guests:
        attack = guests.attack()
        start = time.perf_counter()
        attack.run(env, AttackRunConfig(max_steps=ATTACK_STEPS))
        rate = ATTACK_STEPS / (time.perf_counter() - start)
    row = Row(
        "interactions of a jailed attack, its start included",
        "",
        f"{rate:,.0f} a second",
        "",
        ">= 5,000",
        rate >= 5_000,
    )
    return row, {"per_second": rate}


def measure_search() -> Measured:
    """Run an attack that moves between snapshots, in this process and jailed, in turns."""
    names: dict[str, Any] = {}
    exec(SEARCHING, names)  # noqa: S102 - this file's own text
    config = AttackRunConfig(max_steps=SEARCH_STEPS)
    outside, inside = [], []
    with guest_pool("attack", SEARCHING) as guests:
        for _ in range(MATCHES):
            start = time.perf_counter()
            plain = names["AttackAlgorithm"]().run(SandboxEnv(max_steps=SEARCH_STEPS), config)
            outside.append(time.perf_counter() - start)
            start = time.perf_counter()
            jailed = guests.attack().run(SandboxEnv(max_steps=SEARCH_STEPS), config)
            inside.append(time.perf_counter() - start)
            assert jailed == plain
    # The first runs read texts that the later ones remember.
    in_process, in_jail = statistics.median(outside[1:]), statistics.median(inside[1:])
    ratio = in_jail / in_process
    row = Row(
        "an attack that moves between snapshots, jailed, same candidates",
        "",
        f"{in_jail:.1f} s, {in_process:.1f} s in process",
        f"{ratio:.1f} x",
        "",
        None,
    )
    return row, {"in_process": in_process, "in_jail": in_jail, "ratio": ratio}


class _Stamped(SandboxEnv):
    """Records the time of every reset."""

    def __init__(self, steps: int) -> None:
        super().__init__(max_steps=steps)
        self.resets: list[float] = []

    def reset(self) -> None:
        self.resets.append(time.perf_counter())
        super().reset()


def measure_long_episode() -> Measured:
    """Export the trace after every message, 500 and 2,000 messages after a reset."""
    env = _Stamped(5_000)
    with guest_pool("attack", NEVER_RESETTING) as guests:
        guests.attack().run(env, AttackRunConfig(max_steps=5_000))
    start, middle, end = env.resets[-3:]
    short, long = middle - start, end - middle
    ratio = long / short
    row = Row(
        "an attack that never resets: 2,000 messages against 500",
        "",
        f"{long:.2f} s against {short:.2f} s",
        f"{ratio:.1f} x",
        "about 4 x, <= 6 x",
        ratio <= 6,
    )
    return row, {"short": short, "long": long, "ratio": ratio}


def sections() -> dict[str, Callable[[], Measured]]:
    return {
        "jailed_match": measure_match,
        "jailed_decision": measure_decide,
        "cold_start": measure_start,
        "jailed_attack": measure_attack,
        "jailed_search": measure_search,
        "long_episode": measure_long_episode,
    }
