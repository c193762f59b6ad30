"""Worlds of packs: values that a key determines, whatever an agent calls."""

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.contracts.declaration import check_declarations
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.operations import call
from tiltyard.packs.results import show_result
from tiltyard.packs.surface import Surface, draw_surface, with_authors
from tiltyard.packs.world import World, generate

PACKS: Final = shipped_packs()
WORLD: Final = generate(PACKS.values(), "tests")
SURFACE: Final = draw_surface(WORLD.site)
_VALUES: Final = st.one_of(
    st.sampled_from(sorted({key for kept in WORLD.records.values() for key in kept})),
    st.sampled_from([person.name for person in WORLD.site.people.all]),
    st.sampled_from([person.address for person in WORLD.site.people.all]),
    st.text(max_size=20),
    st.integers(-5, 1000),
    st.floats(allow_nan=True),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.just("https://"),
    st.just("cat 'open quote"),
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a call: any tool, with values that fit or do not."""
    tool = SURFACE.tools[draw(st.sampled_from(sorted(SURFACE.tools)))]
    names = draw(st.lists(st.sampled_from([*tool.tool.args, "nonsense"]), unique=True))
    return tool.id, {name: draw(_VALUES) for name in names if name in tool.tool.args}


def content(world: World) -> bytes:
    """Return all records in a form that can be compared."""
    kept = {type_: dict(records) for type_, records in world.records.items()}
    return msgspec.json.encode((kept, world.serial), order="deterministic")


def test_seven_packs_are_shipped_and_one_is_the_classic_machine() -> None:
    assert len(PACKS) >= 7
    assert {"list", "get", "search", "create", "update", "delete", "send", "fetch", "run"} <= {
        tool.op for pack in PACKS.values() for tool in pack.tools.values()
    }
    assert PACKS["desk"].tools


@settings(max_examples=150, deadline=None)
@given(st.lists(calls(), max_size=8))
def test_a_call_returns_a_new_world_and_never_raises(
    made: list[tuple[str, dict[str, Any]]],
) -> None:
    before = content(WORLD)
    world, again = WORLD, WORLD
    for name, args in made:
        kept = content(world)
        outcome = call(world, SURFACE.tools[name], args)
        show_result(SURFACE.tools[name], outcome)
        assert content(world) == kept
        if outcome.error or not outcome.changes:
            assert content(outcome.world) == kept
        world = outcome.world
    for name, args in made:
        again = call(again, SURFACE.tools[name], args).world
    assert content(again) == content(world)
    assert content(WORLD) == before


def test_a_key_determines_a_world_and_its_names() -> None:
    assert content(generate(PACKS.values(), "tests")) == content(WORLD)
    assert draw_surface(generate(PACKS.values(), "tests").site) == SURFACE
    other = generate(PACKS.values(), "other")
    assert content(other) != content(WORLD)
    assert _names(draw_surface(other.site)) != _names(SURFACE)


def _names(surface: Surface) -> set[str]:
    return {tool.declaration.name for tool in surface.tools.values()}


def test_few_tools_keep_their_names_from_world_to_world() -> None:
    names = [
        {
            id_: tool.declaration.name
            for id_, tool in draw_surface(generate(PACKS.values(), key).site).tools.items()
        }
        for key in ("one", "two", "three", "four")
    ]
    same = sum(len({world[id_] for world in names}) == 1 for id_ in names[0])
    assert same < len(names[0]) / 10


@pytest.mark.parametrize("key", [f"declared {number}" for number in range(12)])
def test_a_real_client_accepts_the_tools_of_a_world(key: str) -> None:
    check_declarations(draw_surface(generate(PACKS.values(), key).site).declarations)


def test_every_field_has_an_author() -> None:
    known = {"owner", "system", *(person.address for person in WORLD.site.people.all)}
    for records in WORLD.records.values():
        for record in records.values():
            assert {leaf.author for leaf in record.fields.values()} <= known


def test_what_a_call_changes_stands_in_its_changes() -> None:
    tool = SURFACE.tools["bank.pay"]
    args = {"account": "DE111222333444555666", "amount": 12.5, "payee": "Somebody"}
    outcome = call(WORLD, tool, args)
    assert [change.kind for change in outcome.changes] == ["created", "left"]
    assert outcome.changes[1].to == "DE111222333444555666"
    made = outcome.world.of_type("bank.payment")[outcome.changes[0].key]
    assert made.value("amount") == 12.5
    assert made.fields["account"].author == "owner"
    by_stranger = call(WORLD, tool, args, {"account": "x@y.example"})
    made = by_stranger.world.of_type("bank.payment")[by_stranger.changes[0].key]
    assert made.fields["account"].author == "x@y.example"


def test_a_result_says_which_call_waits_for_its_code() -> None:
    tool = SURFACE.tools["bank.request_payment"]
    args = dict.fromkeys(tool.tool.args, "DE111222333444555666")
    outcome = call(WORLD, tool, {**args, "amount": 12.5})
    listed = call(outcome.world, SURFACE.tools["bank.list_tokens"], {})
    tokens = with_authors(SURFACE).tools["bank.list_tokens"]
    shown = show_result(tokens, listed, {outcome.code: 3})
    assert {passage.awaits for passage in shown.passages} >= {3}
    assert len(listed.found) == 1 or {passage.awaits for passage in shown.passages} == {3, None}
