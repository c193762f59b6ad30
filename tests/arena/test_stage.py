"""Stages: what a seed determines, and what differs from session to session."""

import re
from typing import Any

import pytest
from msgspec import structs

from outside_agents import stage_of
from tiltyard.arena.stage import (
    PLANTS,
    Stage,
    StageError,
    choose_packs,
    list_tasks,
    make_call,
    set_up,
)
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.schema import Scalar
from tiltyard.packs.world import CANARIES

BANK = {"bank": shipped_packs()["bank"]}


def protected_values(stage: Stage) -> set[Scalar]:
    world = stage.world
    return {
        record.value(name)
        for type_, kind in world.site.types.items()
        for name, field in kind.fields.items()
        if (field.protected or field.secret) and field.kind in CANARIES
        for record in world.of_type(type_).values()
    }


def test_a_staging_determines_the_stage() -> None:
    stage = stage_of(3)
    again = set_up(stage.staging, shipped_packs())
    assert again == stage
    assert again.say == stage.say
    assert again.world.records == stage.world.records


def test_each_session_has_its_own_protected_values_and_all_else_is_the_same() -> None:
    one, other = stage_of(3, canary="one"), stage_of(3, canary="other")
    assert protected_values(one)
    assert not protected_values(one) & protected_values(other)
    assert (one.say, one.surface) == (other.say, other.surface)
    assert one.staging == structs.replace(other.staging, canary="one")


def test_without_is_the_same_world_without_the_strangers_text() -> None:
    stage = stage_of(3, "order")
    assert stage.attempt is not None
    plain = set_up(structs.replace(stage.staging, without=True), shipped_packs())
    (text,) = stage.attempt.plant.texts
    assert text in repr(stage.world.records)
    assert text not in repr(plain.world.records)
    assert plain.say == stage.say


def test_every_way_to_plant_can_be_chosen_where_it_fits() -> None:
    task = "bank/bank-invoice-by-letter"
    for plant in ("order", "colleague", "split", "swap", "none"):
        stage = stage_of(1, plant, task)
        assert stage.staging.plant == plant
        assert (stage.attempt is None) == (plant == "none")
    with pytest.raises(StageError, match=r"has no way to plant 'carry'; it has order"):
        stage_of(1, "carry", task)


def test_a_wrong_choice_says_what_to_choose() -> None:
    with pytest.raises(StageError, match=f"unknown way to plant x; use one of {PLANTS[0]}"):
        stage_of(1, "x")
    with pytest.raises(StageError, match=r"no task is called bank/none; .*--list"):
        stage_of(1, "", "bank/none")
    with pytest.raises(StageError, match="no task is called bank/none"):
        choose_packs(shipped_packs(), 1, "bank/none")
    stage = stage_of(1)
    with pytest.raises(StageError, match="no such pack: bank"):
        set_up(stage.staging, {})


def test_the_seed_chooses_packs_and_a_task_brings_its_own() -> None:
    chosen = {choose_packs(shipped_packs(), seed) for seed in range(20)}
    assert len(chosen) > 5
    assert {len(one) for one in chosen} == {2}
    task = "tracker/" + next(iter(shipped_packs()["tracker"].tasks))
    assert all("tracker" in choose_packs(shipped_packs(), seed, task) for seed in range(20))


def test_the_listed_sentence_is_the_one_that_the_user_says() -> None:
    listed = dict(list_tasks(BANK, 3))
    assert len(listed) > len(BANK["bank"].tasks) / 2
    stage = stage_of(3)
    assert listed[stage.staging.task] == stage.say


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "missing argument"),
        ({"nobody": 1}, "missing argument|unknown argument nobody"),
        ({"x" * 500: 1}, "missing argument|unknown argument x{77}"),
    ],
)
def test_a_wrong_call_is_refused_and_changes_nothing(args: dict[str, Any], problem: str) -> None:
    stage = stage_of(3)
    pay = stage.surface.tools["bank.pay"].declaration.name
    made = make_call(stage.surface, stage.world, pay, args)
    assert not made.result.ok
    assert made.world is stage.world
    assert re.match(problem, str(made.result.error))


def test_an_unknown_tool_is_an_error() -> None:
    stage = stage_of(3)
    made = make_call(stage.surface, stage.world, "\x1b[2J", {})
    assert made.result.error == r"unknown tool \x1b[2J"
