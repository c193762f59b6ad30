"""Sealed tasks: the key determines them, and they work."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import structs

from tiltyard.arena.check import check_pack
from tiltyard.arena.references import is_reference
from tiltyard.arena.sealed_words import ORDERS
from tiltyard.arena.sealing import Rows, make_pack, reword_goals
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.schema import Task
from tiltyard.packs.sealed import read_sealed, write_goals, write_tasks

PACKS: Final = shipped_packs()


@cache
def make(key: str) -> dict[str, Task]:
    return make_pack(PACKS["shop"], {"shop": PACKS["shop"]}, 12, key).tasks


def test_the_kept_tasks_are_those_of_their_key() -> None:
    """`sealed/` has the tasks of the key `tests`; this draws the first pack again."""
    kept = read_sealed(Path(__file__).parent / "sealed").packs["bank"]
    made = make_pack(PACKS["bank"], PACKS, 20, "tests", Rows())
    assert (made.tasks, made.goals) == (kept.tasks, kept.goals)


def test_strangers_also_want_what_users_want() -> None:
    kept = read_sealed(Path(__file__).parent / "sealed").packs
    for name, pack in kept.items():
        wishes = [goal for goal in pack.goals if goal not in PACKS[name].goals]
        wanted = {step.do for goal in pack.goals.values() for step in goal.plan}
        used = {task.plan[-1].do for task in pack.tasks.values() if task.orders}
        assert len(wishes) >= 4, name
        assert len(used & wanted) >= len(used) * 2 / 3, name


def test_orders_are_reworded_and_keep_every_literal(tmp_path: Path) -> None:
    goals = {name: reword_goals(pack, "one") for name, pack in PACKS.items()}
    public = {
        order for pack in PACKS.values() for goal in pack.goals.values() for order in goal.orders
    }
    for name, pack in PACKS.items():
        changed = structs.replace(pack, goals=goals[name], tasks={})
        assert check_pack(changed, {**PACKS, name: changed}) == []
        assert {*goals[name]} == {*pack.goals}
        assert not public & {order for goal in goals[name].values() for order in goal.orders}
        (tmp_path / name).mkdir()
        (tmp_path / name / "goals.toml").write_text(write_goals(goals[name]), encoding="utf-8")
    sealed = read_sealed(tmp_path)
    assert {name: pack.goals for name, pack in sealed.packs.items()} == goals


def test_a_key_determines_tasks_that_pass_the_check(tmp_path: Path) -> None:
    tasks = make("one")
    assert len(tasks) == 12
    assert tasks == make.__wrapped__("one")
    assert not {task.say for task in tasks.values()} & {task.say for task in make("two").values()}
    assert check_pack(structs.replace(PACKS["shop"], tasks=tasks), {"shop": PACKS["shop"]}) == []
    assert any(task.delegates for task in tasks.values())
    values = [
        value for task in tasks.values() for step in task.plan for value in step.args.values()
    ]
    assert sum(map(is_reference, values)) >= 3
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tasks.toml").write_text(write_tasks(tasks), encoding="utf-8")
    assert read_sealed(tmp_path).packs["shop"].tasks == tasks


def test_values_that_users_need_stand_in_texts_like_orders() -> None:
    frames = [
        re.escape(frame).replace(r"\[do\]", ".+").replace(r"\[args\]", ".+") for frame in ORDERS
    ]
    notes = [str(given) for task in make("one").values() for given in task.given.values()]
    assert len(notes) >= 2
    for note in notes:
        assert any(re.search(frame, note, re.IGNORECASE) for frame in frames), note
