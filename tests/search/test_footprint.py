"""Footprints use the documented tools."""

from tiltyard.search.footprint import TARGETS
from tiltyard.world.tools import TOOLS


def test_the_targets_are_those_that_the_tools_declare() -> None:
    assert {name: TOOLS[name].target for name in TARGETS} == TARGETS
