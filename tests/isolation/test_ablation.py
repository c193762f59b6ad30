"""No single layer protects the judge's secrets or the network alone: two layers always do.

At level A there is one exception, the hypervisor's socket, which no namespace removes. Level B has
fewer layers and more exceptions, so its results are not comparable. `KNOWN` lists all exceptions.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tiltyard.isolation.host.fork_server import LAYERS

HERE: Final = Path(__file__).parent
QUIET: Final = (
    "secret_file",
    "secret_by_link",
    "secret_by_dots",
    "judge_environ",
    "judge_maps",
    "judge_memory",
    "environment",
    "walk_objects",
    "inherited_descriptor",
    "tcp_connect",
    "udp_send",
    "unix_abstract",
    "unix_path",
    "vsock",
)
DEADLY: Final = ("process_vm_readv",)
"""Probes that may kill their guest. Each runs in a guest of its own."""

FILES: Final = {"secret_file", "secret_by_link", "secret_by_dots"}
KNOWN: Final[dict[tuple[str, str, str], set[str]]] = {
    ("A", "root", "seccomp"): {"vsock"},
    ("A", "ordinary", "seccomp"): {"vsock"},
    ("B", "root", "seccomp"): {"vsock", "udp_send"},
    ("B", "ordinary", "seccomp"): {"vsock", "udp_send", "unix_path"},
    ("B", "ordinary", "landlock"): FILES,
}


def got(name: str, told: dict[str, Any], result: Any, canaries: dict[str, str]) -> bool:
    """Return whether a probe has reached its goal."""
    expected = json.loads((HERE / "probes" / name / "expect.json").read_text(encoding="utf-8"))
    how, _, what = expected["succeeds"].partition(" ")
    return what in told["heard"] if how == "heard" else str(result) == canaries.get(what, what)


@pytest.mark.parametrize("level", ["A", pytest.param("B", marks=pytest.mark.soak)])
@pytest.mark.parametrize("layer", ["none", *LAYERS])
def test_every_secret_is_behind_two_layers(layer: str, level: str, judge: Any) -> None:
    without = [] if layer == "none" else [layer]
    told = judge.probes(QUIET, level, without)
    results = told.get("result", {})
    opened = {name for name in QUIET if got(name, told, results.get(name), judge.canaries)}
    for name in DEADLY:
        alone = judge.probe(name, level, without)
        if got(name, alone, alone.get("result"), judge.canaries):
            opened.add(name)
    who = "ordinary" if judge.uid else "root"
    assert opened == KNOWN.get((level, who, layer), set()), told
    # A jail that cannot work without this layer does not start at all.
    assert told["outcome"] == "returned" or "cannot apply" in told["output"], told


@pytest.mark.parametrize("level", ["A", "B"])
def test_without_layers_every_probe_succeeds(level: str, judge: Any) -> None:
    told = judge.probes(QUIET, level, LAYERS)
    results = told["result"]
    opened = {name for name in QUIET if got(name, told, results.get(name), judge.canaries)}
    behind_the_user_namespace = {"judge_environ", "judge_maps", "judge_memory"}
    kept = behind_the_user_namespace if level == "A" and judge.uid else set()
    assert opened == set(QUIET) - kept
