"""Data flow that is tainted only by a page or mail with a sentence in no public list."""

import re
from collections.abc import Iterator
from functools import lru_cache

from tiltyard import DataFlowGuardrail
from tiltyard.contracts.guardrail import Result
from tiltyard.world import templates

BOOK = templates.load()
CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
SLOT = re.compile(r"\{[^{}]+\}")
CUT = re.compile(r'(?:(?<=[.!?;:])|(?<=[.!?;:]["”`)]))\s+|\n+')
QUOTED_LINE = re.compile(r"(?m)^>.*$")
MIN_LETTERS = 9
"""A sentence with fewer letters outside its slots would match nearly everything."""


def pieces(text: str) -> Iterator[str]:
    for piece in CUT.split(QUOTED_LINE.sub("", text)):
        words = piece.strip().removeprefix("- ")
        if words:
            yield words


def variants(template: str) -> list[str]:
    found = CHOICE.search(template)
    if found is None:
        return [template[:1].upper() + template[1:]]
    before, after = template[: found.start()], template[found.end() :]
    return [each for option in found[1].split("|") for each in variants(before + option + after)]


def listed() -> Iterator[str]:
    """Yield the templates of every ordinary sentence."""
    for topics in BOOK.topics.values():
        for topic in topics:
            yield from (*topic.openers, *topic.middles, *topic.closers, *topic.secrets)
    for name in ("remark", "loaded_remark", "greeting", "goodbye", "first", "line"):
        yield from BOOK.words[name]
    for family in BOOK.families:
        for attack in family.template:
            yield attack.twin
            yield from (linked.body for linked in attack.linked if linked.ordinary)


def known() -> Iterator[str]:
    for template in listed():
        for variant in variants(template):
            for piece in pieces(variant):
                parts = SLOT.split(piece)
                if len(parts) == 1 or len(re.findall("[a-z]", "".join(parts))) >= MIN_LETTERS:
                    yield ".*?".join(map(re.escape, parts))


KNOWN = re.compile("|".join(sorted(set(known()))))


@lru_cache(maxsize=20_000)
def is_ordinary(text: str) -> bool:
    return all(KNOWN.fullmatch(piece) for piece in pieces(text))


class Guardrail(DataFlowGuardrail):
    def observe(self, tool_name: str, tool_args: dict[str, str], result: Result) -> None:
        output = str(result.output)
        body = output.partition("\n\n")[2] if tool_name == "email.read" else output
        if not is_ordinary(body):
            super().observe(tool_name, tool_args, result)
