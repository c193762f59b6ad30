"""Nothing outside the bridge knows AgentDojo: a guardrail that did would prove nothing."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import tiltyard
from tiltyard.bridges.dojo.suites import SUITES, Suite

SOURCE: Final = Path(tiltyard.__file__).parent
BRIDGE: Final = SOURCE / "bridges" / "dojo"
KNOWING: Final = 7
"""So many words in a row are no coincidence."""
_WORD: Final = re.compile(r"[a-z0-9']+")


@cache
def suites() -> list[Suite]:
    return Suite.load(SUITES)


def sources() -> dict[str, str]:
    """Return every text file outside the bridge."""
    texts = {}
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and BRIDGE not in path.parents and path.suffix != ".pyc":
            texts[str(path.relative_to(SOURCE))] = path.read_text(errors="replace").lower()
    assert len(texts) > 300
    return texts


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member)
            if any(char in key for char in "@./ ") or any(char.isdigit() for char in key):
                yield key
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


@cache
def values() -> frozenset[str]:
    """Return the texts of the environments: names, addresses, accounts, documents."""
    return frozenset(
        text for suite in suites() for text in leaves(suite.environment({}).model_dump(mode="json"))
    )


def runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    for at in range(len(words) - KNOWING + 1):
        yield tuple(words[at : at + KNOWING])


def test_no_source_file_names_a_tool() -> None:
    names = {one.name for suite in suites() for one in suite.tools}
    assert len(names) > 60
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    assert not {path: found for path, text in sources().items() if (found := pattern.findall(text))}


def test_no_source_file_repeats_a_text() -> None:
    texts = [*values()]
    for suite in suites():
        texts += [one.PROMPT for one in suite.native.user_tasks.values()]
        texts += [one.GROUND_TRUTH_OUTPUT for one in suite.native.user_tasks.values()]
        texts += [one.GOAL for one in suite.native.injection_tasks.values()]
        texts.append(suite._attack.jailbreak)
    known = {run for text in texts for run in runs(text)}
    assert len(known) > 5_000
    for path, text in sources().items():
        assert not known.intersection(runs(text)), path


def test_no_source_file_has_a_value_of_an_environment() -> None:
    telling = {
        one.lower()
        for one in values()
        if 6 <= len(one) <= 80 and (" " in one.strip() or re.search(r"[0-9@]", one))
    }
    assert len(telling) > 300
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, telling))})(?!\w)")
    assert not {path: found for path, text in sources().items() if (found := pattern.findall(text))}
