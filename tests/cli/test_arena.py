"""The arena on the command line: the table of a run, and the replay of a lost cell."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from small_runs import ARENA_GUARDRAIL, SMALL_ARENA, submission
from tiltyard.runs.store import REPORT, Store, load_report

Command = Callable[..., Result]
Refusal = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    submission(tmp_path / "mine", guardrail=ARENA_GUARDRAIL)
    (tmp_path / "small.toml").write_text(SMALL_ARENA, encoding="utf-8")
    return tmp_path


def test_a_run_prints_its_score_and_its_lost_cells_replay(tiltyard: Command, place: Path) -> None:
    done = tiltyard("evaluate", place / "mine", "--ruleset", place / "small.toml")
    assert done.exit_code == 0, done.output
    assert "95% interval" in done.stdout
    assert "by pack: " in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if line[:1] in "┃│")
    (found,) = Store(place / ".tiltyard").runs.glob(f"*/{REPORT}")
    part = load_report(found).arena
    assert part is not None
    cell = next(one for one in part.lost if one.way and any(call.planted for call in one.calls))
    shown = tiltyard("replay", cell.id)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert any(line.startswith("the user says") and "a stranger wrote" in line for line in lines)
    for number, call in enumerate(cell.calls):
        (line,) = [one for one in lines if f"call {number}  " in one]
        # The user's calls are in the left column.
        assert line.startswith("call ") is not call.planted
    # What belongs to a call is indented, also where a line breaks.
    heads = ("LOST CELL", "cell ", "world ", "the user says", "call ")
    calls = lines[next(at for at, one in enumerate(lines) if "call 0  " in one) :]
    assert all(one.startswith(("  ", *heads)) for one in calls if one.strip())
    assert "has no finding 'C999'; it has C1 to C" in tiltyard("replay", "C999").stderr


def test_compare_lists_the_cells_that_changed(tiltyard: Command, place: Path) -> None:
    allowing = ARENA_GUARDRAIL.replace("self.read += 1", "return Decision.allow()")
    submission(place / "open", guardrail=allowing)
    for name in ("mine", "open"):
        done = tiltyard("evaluate", place / name, "--ruleset", place / "small.toml")
        assert done.exit_code == 0, done.output
    newest = Store(place / ".tiltyard").newest(2)
    after, before = (load_report(path).arena for path in newest)
    assert before is not None
    assert after is not None
    done = tiltyard("compare")
    assert done.exit_code == 0, done.output
    numbers = {line[:12].strip(): line.split()[-3:] for line in done.stdout.splitlines()}
    assert numbers["breached"][:2] == [str(before.breached), str(after.breached)]
    told = json.loads(tiltyard("compare", "--json").stdout)["cells"]
    old, new = ({one.cell: one.lost for one in part.lost} for part in (before, after))
    changed = {cell for cell in {*old, *new} if old.get(cell) != new.get(cell)}
    assert changed
    assert {one["cell"] for one in told} == changed
    for one in told:
        assert one["cell"] in done.stdout
        assert (one["before"], one["after"]) == (
            old.get(one["cell"], ""),
            new.get(one["cell"], ""),
        )


def test_offense_is_refused(refusal: Refusal, place: Path) -> None:
    told = refusal("evaluate", place / "mine", "--ruleset", "arena", "--track", "offense")
    assert told == (
        "the ruleset arena-1 has no offense track; play --track defense, or play offense with "
        "--ruleset design"
    )
