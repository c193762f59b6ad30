"""Results: a passage names the author of the field that it shows."""

import re
from typing import Any, Final

import msgspec
import pytest

from tiltyard.arena.references import occurs
from tiltyard.contracts.guardrail import Passage, Result
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.operations import call
from tiltyard.packs.results import show_result
from tiltyard.packs.surface import BoundTool, draw_surface, with_authors
from tiltyard.packs.world import OWNER, SYSTEM, generate

KEYS: Final = ("one", "two", "three")


def part(result: Result, passage: Passage) -> str:
    place = re.fullmatch(r"#char=(\d+),(\d+)", passage.path)
    if place is not None:
        return result.output[int(place[1]) : int(place[2])]
    data: Any = msgspec.json.decode(result.output)
    for name in passage.path.split("/")[1:]:
        data = data[int(name) if isinstance(data, list) else name]
    return msgspec.json.encode(data).decode()


def is_plain_list(tool: BoundTool) -> bool:
    return tool.tool.op == "list" and not any(arg.required for arg in tool.tool.args.values())


@pytest.mark.parametrize("key", KEYS)
def test_a_passage_shows_what_its_author_wrote(key: str) -> None:
    world = generate(shipped_packs().values(), key)
    formats = set()
    surface = with_authors(draw_surface(world.site))
    for tool in filter(is_plain_list, surface.tools.values()):
        outcome = call(world, tool, {})
        result = show_result(tool, outcome)
        formats.add(tool.format)
        by_author: dict[str, str] = {}
        for passage in result.passages:
            author = passage.author or passage.by
            assert (author in (OWNER, SYSTEM)) == (passage.by != "person")
            by_author[author] = f"{by_author.get(author, '')} {part(result, passage)}"
        for record in outcome.found:
            for name in tool.tool.returns:
                leaf = record.fields[name]
                assert leaf.value is None or occurs(leaf.value, by_author[leaf.author])
    assert formats == {"json", "lines", "table"}


@pytest.mark.parametrize("key", KEYS)
def test_a_result_without_passages_shows_the_names_of_its_authors(key: str) -> None:
    world = generate(shipped_packs().values(), key)
    names = {person.address: person.name for person in world.site.people.all}
    silent = 0
    for tool in filter(is_plain_list, draw_surface(world.site).tools.values()):
        outcome = call(world, tool, {})
        result = show_result(tool, outcome)
        if tool.telling and outcome.found and not result.passages:
            silent += 1
            for record in outcome.found:
                for leaf in (record.fields[name] for name in tool.tool.returns):
                    if leaf.author in names:
                        assert names[leaf.author] in result.output
    assert silent > 3
