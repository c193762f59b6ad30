"""A keyed official evaluation: the processor time of the judge and of all guests together."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from table import Measured, Row
from tiltyard.guardrails import AllowAllGuardrail
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.runs.key import make_key
from tiltyard.world.generate import generate

SUBMISSION = Path(__file__).parent.parent / "examples" / "balanced"
CORES = 2
GOAL_SECONDS = 60
"""On two cores that have nothing else to do."""


class Cost(NamedTuple):
    elapsed: float
    processor: float
    """Seconds of all processes together."""


def measure_evaluation(options: Sequence[str] = ()) -> Measured:
    """Evaluate a submission twice with a new key. The first time builds the batteries too."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-bench-") as name:
        key, store = Path(name, "organizer.key"), Path(name, "store")
        key.write_text(make_key(), encoding="utf-8")
        command = [sys.executable, "-m", "tiltyard", "evaluate", str(SUBMISSION), *options]
        command += ["--key", str(key), "--store", str(store), "--fresh", "--json"]
        first, again = _cost(command), _cost(command)
    match = _seconds_in_process()
    worlds = load_ruleset().official.seeds
    ratio = again.processor / (worlds * match)
    row = Row(
        f"a keyed official evaluation of {SUBMISSION.name}, both tracks in {worlds} worlds",
        "",
        f"{again.processor:.0f} s of processor time, {again.elapsed:.0f} s on {os.cpu_count()} "
        f"cores; the first with a new key {first.processor:.0f} s",
        f"{ratio:.1f} x {worlds} defense matches of {match:.1f} s in process",
        f"<= {CORES * GOAL_SECONDS} s of processor time",
        again.processor <= CORES * GOAL_SECONDS,
    )
    return row, {"first": first._asdict(), "again": again._asdict(), "in_process": match}


def _seconds_in_process() -> float:
    """Return the processor time of a defense match without a jail, in the public world."""
    settings = MatchSettings(generate(123), load_ruleset())
    start = time.process_time()
    play_defense(settings, AllowAllGuardrail)
    return time.process_time() - start


def _cost(command: Sequence[str]) -> Cost:
    with _control_group() as group:

        def join() -> None:
            (group / "cgroup.procs").write_text("0", encoding="ascii")

        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=join)
        return Cost(time.perf_counter() - start, _processor_seconds(group))


@contextmanager
def _control_group() -> Iterator[Path]:
    """Make a control group. No process waits for all guests, so only the kernel knows their sum."""
    places = (Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup"))
    place = next(place for place in places if (place / "cgroup.procs").exists())
    group = place / f"tiltyard-bench-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()


def _processor_seconds(group: Path) -> float:
    usage = group / "cpuacct.usage"
    if usage.exists():
        return int(usage.read_text(encoding="ascii")) / 1e9
    counts = dict(line.split() for line in (group / "cpu.stat").read_text("ascii").splitlines())
    return int(counts["usage_usec"]) / 1e6


def sections() -> dict[str, Callable[[], Measured]]:
    return {"evaluation": measure_evaluation}
