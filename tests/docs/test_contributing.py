"""CONTRIBUTING.md describes the code as it is: its rooms, and the path of one tool call."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from small_runs import request, small_rules, submission
from tiltyard.matches.acceptance import PartCheck
from tiltyard.matches.battery import find_battery
from tiltyard.matches.settings import MatchSettings
from tiltyard.runs import play
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.store import Store
from tiltyard.world.generate import generate

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "tiltyard"
PAGE: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAX_HOPS: Final = 15
_HOP: Final = re.compile(r"^ *(\d+)  (\S+\.py): (\w+)  +\S", re.MULTILINE)


def listed_rooms() -> list[str]:
    return re.findall(r"^(\w+)/ ", PAGE, re.MULTILINE)


def layers() -> list[set[str]]:
    """Return the rooms of the import contract, the lowest layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    rooms = next(one for one in contracts if one["containers"] == ["tiltyard"])
    return [set(re.findall(r"\w+", layer)) for layer in reversed(rooms["layers"])]


def test_the_map_lists_every_room_in_the_order_of_the_import_contract() -> None:
    order = [layer - {"__main__"} for layer in layers()]
    rooms = listed_rooms()
    assert {*rooms} == {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    for layer in filter(None, order):
        assert {*rooms[: len(layer)]} == layer
        del rooms[: len(layer)]
    assert not rooms


def test_the_path_of_a_tool_call_names_files_and_functions_that_exist() -> None:
    hops = _HOP.findall(PAGE)
    assert [int(number) for number, _, _ in hops] == [*range(1, len(hops) + 1)]
    assert 5 < len(hops) <= MAX_HOPS
    for _, file, function in hops:
        tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{file} has no function {function}"


def test_an_evaluation_takes_the_path_of_a_tool_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each function on the path is first called after the one before it."""
    # The check before a match plays episodes of its own.
    monkeypatch.setattr(play, "check_part", lambda *_: PartCheck(()))
    path = [(str(SOURCE / file), function) for _, file, function in _HOP.findall(PAGE)]
    assert path[0][0] == str(SOURCE / "cli/evaluate.py")
    # The command only parses options, and a guest is another process.
    path = [hop for hop in path[1:] if "/isolation/guest/" not in hop[0]]
    names = {function for _, function in path}
    called: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name in names:
            called.setdefault((code.co_filename, code.co_name))

    mine = submission(tmp_path / "mine", attack="")
    # The battery plays episodes of its own too. This run finds it in memory.
    find_battery(MatchSettings(generate(123), small_rules(100)).in_new_words())
    sys.setprofile(note)
    try:
        finished = evaluate(request(mine, rules=small_rules(100)), Store(tmp_path / "store"))
    finally:
        sys.setprofile(None)
    assert not finished.report.failures
    assert [hop for hop in called if hop in path] == path
