"""Hostile probes: each is stopped by the layers it names, in their order, and by nothing else.

A folder in `probes/` holds what is tried and what is expected, level by level: which layer stops
it, with which error. Then that layer is left out, and the next must stop it with its own error.
With all of them left out the probe succeeds: so it was they who stopped it, and not a mistake in
the probe. Where something that cannot be left out still stands in the way, `still` names its error.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROBES = sorted(path.parent.name for path in Path(__file__).parent.glob("probes/*/expect.json"))


def expectation(name: str) -> dict[str, Any]:
    path = Path(__file__).parent / "probes" / name / "expect.json"
    expected: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return expected


def tried() -> Iterator[tuple[str, str, str]]:
    """Yield who tries what at which level: not where there is no such directory or user."""
    machine = os.uname().machine
    for name in PROBES:
        expected = expectation(name)
        if expected.get("machine", machine) == machine:
            for level in ("A", "B"):
                for who in expected.get("uids", ["root", "ordinary"]):
                    if level in expected:
                        yield who, name, level


TRIED = list(tried())


def has_succeeded(goal: str, told: dict[str, Any], canaries: dict[str, str]) -> bool:
    """Say whether a probe got what it was after, going by what the judge saw."""
    how, _, what = goal.partition(" ")
    if how == "returns":
        return str(told.get("result")) == canaries.get(what, what)
    if how == "survives":
        return bool(told["survivors"])
    return what in told["heard" if how == "heard" else "left"]


@pytest.mark.parametrize(("judge", "name", "level"), TRIED, indirect=["judge"])
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
