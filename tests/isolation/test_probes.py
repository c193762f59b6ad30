"""Hostile probes: the layers that a probe names stop it, in that order, and nothing else does.

A folder in `probes/` contains a probe and, for each level, the layers that stop it with their
errors. The test leaves out one layer after the other: the next layer must stop the probe with its
own error. Without all of them the probe succeeds; so the layers stopped it, and not a mistake in
the probe. If something else still stops it, `still` names that error.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SLOW = ("endless_loop", "raise_limits", "signal_by_owner")
"""Probes that end only when their time is up. Others try the same layers."""
PROBES = sorted(path.parent.name for path in Path(__file__).parent.glob("probes/*/expect.json"))


def expectation(name: str) -> dict[str, Any]:
    path = Path(__file__).parent / "probes" / name / "expect.json"
    expected: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return expected


def tried() -> Iterator[tuple[str, str, str]]:
    """Yield user, probe and level, as far as they exist on this machine."""
    machine = os.uname().machine
    for name in PROBES:
        expected = expectation(name)
        if expected.get("machine", machine) == machine:
            for level in ("A", "B"):
                for who in expected.get("uids", ["root", "ordinary"]):
                    if level in expected:
                        yield who, name, level


def shared_out() -> Iterator[Any]:
    """Yield one user and level of each probe for every run, the others for `make soak`.

    Neighbours take turns, so that every run tries each user at each level.
    """
    for number, name in enumerate(PROBES):
        ways = [way for way in tried() if way[1] == name]
        for at, way in enumerate(ways):
            is_short = at == number % len(ways) and name not in SLOW
            yield pytest.param(*way, marks=[] if is_short else pytest.mark.soak)


def has_succeeded(goal: str, told: dict[str, Any], canaries: dict[str, str]) -> bool:
    """Return whether the judge saw that a probe reached its goal."""
    how, _, what = goal.partition(" ")
    if how == "returns":
        return str(told.get("result")) == canaries.get(what, what)
    if how == "survives":
        return bool(told["survivors"])
    return what in told["heard" if how == "heard" else "left"]


@pytest.mark.parametrize(("judge", "name", "level"), list(shared_out()), indirect=["judge"])
def test_a_probe_is_stopped_by_each_layer_in_turn(name: str, level: str, judge: Any) -> None:
    expected = expectation(name)
    who = "ordinary" if judge.uid else "root"
    goal, asked = expected["succeeds"], expected.get("asked", {})
    left_out: list[str] = []
    for layer, outcome, *only in expected[level]:
        if only and who not in only:
            continue
        told = judge.probe(name, level, left_out, **asked)
        seen = "nothing" if told["outcome"] == "returned" else told["outcome"]
        assert (seen, left_out) == (outcome, left_out), told
        assert not has_succeeded(goal, told, judge.canaries), (left_out, told)
        assert not told["survivors"], (left_out, told)
        assert not told["left"], (left_out, told)
        assert not told["heard"], (left_out, told)
        assert told["descriptors_leaked"] == 0
        left_out.append(layer)
    told = judge.probe(name, level, left_out, **asked)
    still = expected.get("still", {}).get(f"{level} {who}")
    if still is None:
        assert has_succeeded(goal, told, judge.canaries), (left_out, told)
    else:
        assert told["outcome"] == still, (left_out, told)
