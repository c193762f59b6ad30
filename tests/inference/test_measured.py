"""The labels are complete, and inference reaches its goals on each half of them."""

import tomllib
from pathlib import Path
from typing import Final

import pytest

import measure_inference as measured
from tiltyard.inference.arguments import arguments_of

ROOT: Final = Path(__file__).parents[2]
GOAL: Final = 0.9


@pytest.mark.parametrize("case", [*measured.cases()], ids=lambda case: case.declared.name)
def test_every_argument_has_a_label(case: measured.Case) -> None:
    found = {one.pointer for one in arguments_of(case.declared.input_schema)}
    assert found == case.roles.keys()


def test_the_halves_follow_the_rule() -> None:
    labels = tomllib.loads((measured.DATA / "labels.toml").read_text(encoding="utf-8"))
    halves = {
        (server, name): label["half"]
        for server, tools in labels.items()
        for name, label in tools.items()
    }
    assert halves == {(server, name): measured.half(server, name) for server, name in halves}
    assert sorted({*halves.values()}) == ["development", "held out"]


@pytest.mark.parametrize("group", measured.SETS)
def test_goals(group: str) -> None:
    figures = measured.measure([case for case in measured.cases() if case.group == group])
    for row in ("effect right", "destinations found"):
        right, every = figures[row]
        assert right / every >= GOAL, row
    assert figures["strangers' content called trusted"][0] == 0


def test_the_page_has_the_figures() -> None:
    page = (ROOT / "docs" / "inference.md").read_text(encoding="utf-8")
    groups = {
        name: [case for case in measured.cases() if case.group == name] for name in measured.SETS
    }
    assert measured.table(groups) in page
