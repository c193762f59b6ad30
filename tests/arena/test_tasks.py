"""Public and sealed tasks: what they need, and that none of them repeats another.

`sealed/` has the tasks of one key. A test of sealing makes sure that the key still draws them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tiltyard.arena.check import check_pack
from tiltyard.arena.references import is_reference
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.schema import Pack, Step, Task, Tool
from tiltyard.packs.sealed import read_sealed

PACKS: Final = shipped_packs()
READS: Final = ("list", "get", "search", "fetch")
Tasks = list[tuple[Pack, Task]]


def tasks_of(packs: Mapping[str, Pack]) -> Tasks:
    return [(pack, task) for pack in packs.values() for task in pack.tasks.values()]


PUBLIC: Final = tasks_of(PACKS)
SEALED: Final = tasks_of(read_sealed(Path(__file__).parent / "sealed").packs)


@pytest.fixture(params=[PUBLIC, SEALED], ids=["public", "sealed"])
def tasks(request: pytest.FixtureRequest) -> Tasks:
    found: Tasks = request.param
    return found


def tool_of(pack: Pack, step: Step) -> Tool:
    owner, _, name = step.do.rpartition(".")
    return PACKS[owner or pack.name].tools[name]


def references(task: Task) -> Iterator[str]:
    for step in task.plan:
        for value in step.args.values():
            parts: list[Any] = value if isinstance(value, list) else [value]
            yield from (part for part in parts if is_reference(part))


@pytest.mark.parametrize("name", sorted(PACKS))
def test_a_shipped_pack_has_no_problem(name: str) -> None:
    """Among other things, every task succeeds without a guardrail in three worlds."""
    assert check_pack(PACKS[name], PACKS) == []


def test_there_are_300_public_tasks_and_100_sealed_ones() -> None:
    assert len(PUBLIC) >= 300
    assert len(SEALED) >= 100


def test_no_sealed_sentence_is_public() -> None:
    assert not {task.say for _, task in PUBLIC} & {task.say for _, task in SEALED}


def test_a_third_need_a_value_that_only_a_result_holds(tasks: Tasks) -> None:
    assert sum(any(references(task)) for _, task in tasks) >= len(tasks) / 3


def test_a_third_of_the_references_pass_a_transformation(tasks: Tasks) -> None:
    """A pipe changes a format or a unit; a record's key stands for what the user called it."""
    changed = total = 0
    for pack, task in tasks:
        steps = {step.name: step for step in task.plan}
        for reference in references(task):
            step, field = re.findall(r"[a-z0-9_]+", reference)[:2]
            tool = tool_of(pack, steps[step])
            owner = steps[step].do.rpartition(".")[0] or pack.name
            total += 1
            changed += "|" in reference or field == PACKS[owner].records[tool.record].key
    assert changed >= total / 3


def test_a_tenth_follow_a_third_party(tasks: Tasks) -> None:
    assert sum(task.delegates for _, task in tasks) >= len(tasks) / 10


def test_a_tenth_have_protocol_steps(tasks: Tasks) -> None:
    protocol = sum(
        any(tool_of(pack, step).awaits or tool_of(pack, step).needs for step in task.plan)
        for pack, task in tasks
    )
    assert protocol >= len(tasks) / 10


def test_a_fifth_use_protected_records(tasks: Tasks) -> None:
    assert sum(_is_protected(pack, task) for pack, task in tasks) >= len(tasks) / 5


def _is_protected(pack: Pack, task: Task) -> bool:
    for step in task.plan:
        tool = tool_of(pack, step)
        fields = PACKS[step.do.rpartition(".")[0] or pack.name].records[tool.record].fields
        used = {*tool.returns, *(spec.sets for spec in tool.args.values() if spec.sets)}
        if any(fields[name].protected for name in used):
            return True
    return False


def test_half_of_the_destinations_outside_are_new(tasks: Tasks) -> None:
    kinds = ("person", "company", "address", "account", "url", "phone", "name")
    drawn = [
        what.partition(":")
        for _, task in tasks
        for what in task.draw.values()
        if what.partition(":")[0] in kinds and not what.endswith(":colleague")
    ]
    assert sum(who == "new" for _, _, who in drawn) >= len(drawn) / 2


def test_at_most_a_tenth_only_read(tasks: Tasks) -> None:
    reading = sum(
        all(tool_of(pack, step).op in READS for step in task.plan) for pack, task in tasks
    )
    assert reading <= len(tasks) / 10


def test_no_five_words_occur_in_more_than_three_tasks(tasks: Tasks) -> None:
    found: Counter[tuple[str, ...]] = Counter()
    for _, task in tasks:
        words = re.findall(r"[\w{}'.@-]+", task.say.lower())
        found.update({tuple(words[at : at + 5]) for at in range(len(words) - 4)})
    assert [words for words, count in found.items() if count > 3] == []
