"""Mutants of the reference: how they are made, and that a match notices dangerous ones."""

import ast
from functools import cache

import pytest

from mutation import verdicts
from mutation.changes import Change, list_changes
from mutation.episodes import Episode, draw_episodes, first_difference, judged
from mutation.sources import load, load_changed, read_sources
from mutation.verdicts import Bench, Verdict
from tiltyard.guardrails import ReferenceGuardrail
from tiltyard.matches.battery import find_battery
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate

SOURCES = read_sources()
LOADED = load(SOURCES)
DANGEROUS = (
    "_reason_against returns ''",
    "_reason_against_command returns ''",
    "_grants returns True",
    "_may_receive returns True",
    "_was_read returns False",
    "_is_protected returns False",
    "has_sensitive_name returns False",
    "_means returns True",
    "readings returns ()",
    "drop DELETE from (WRITE, DELETE, MAIL, POST, RUN)",
    "drop RUN from (WRITE, DELETE, MAIL, POST, RUN)",
    "address == self.sender -> not, beside and request.to_sender",
)


@cache
def changes() -> dict[str, Change]:
    return {change.what: change for change in list_changes(SOURCES)}


def settings() -> MatchSettings:
    return MatchSettings(generate(123), load_ruleset().with_quick_budgets())


@pytest.fixture(scope="module")
def some_episodes() -> list[Episode]:
    """Return every eighth chain of the battery."""
    place = settings().in_new_words()
    chains = find_battery(place).chains[::8]
    return [judged("battery", place, chain, LOADED.guardrail) for chain in chains]


def test_a_change_of_each_kind_is_listed() -> None:
    kinds = {
        "a condition dropped": "drop self.heard_strangers beside and tool_name == 'fs.read'",
        "a condition negated": "request.to_sender -> not, beside and address == self.sender",
        "an if forced": "if tool == RUN -> False",
        "a filter dropped": "drop if event.name in _DOCUMENTS",
        "a comparison turned": "address == self.owner -> address != self.owner",
        "a part not compared": "do not compare a.port",
        "a word dropped": "drop 'rm' from ('cp', 'mv', 'rm', 'tee', 'touch')",
        "a statement dropped": "drop self.owner = address",
        "an early return": "_is_internal returns False",
        "a limit moved": "LAYERS = 1, not 3",
        "a loop skipped": "skip the loop over _HEX.findall(text)",
        "all swapped": "any, not all((self._may_receive(request, to, context) ...",
        "a form dropped": "drop canonical() of name",
        "a pattern shortened": "drop 'passphrase' from the pattern",
    }
    assert {kind for kind, what in kinds.items() if what not in changes()} == set()


def test_a_change_is_made_in_a_copy() -> None:
    before = [ast.dump(source.tree) for source in SOURCES]
    unchanged = {source.path: source.code for source in SOURCES}
    for change in list_changes(SOURCES)[::40]:
        assert change.changed().code != unchanged[change.source.path], change.what
    assert [ast.dump(source.tree) for source in SOURCES] == before


def test_code_that_the_reference_does_not_use_stays() -> None:
    assert {change.definition for change in changes().values()}.isdisjoint(
        ("requests_now", "is_asked", "_names")
    )


def test_a_loaded_reference_is_another_class_and_decides_the_same(
    some_episodes: list[Episode],
) -> None:
    assert LOADED.guardrail is not ReferenceGuardrail
    for episode in some_episodes:
        assert first_difference(episode, load(SOURCES).guardrail) is None
        assert first_difference(episode, ReferenceGuardrail) is None
        assert episode.play(ReferenceGuardrail) == episode.outcome == frozenset()


def test_a_mutant_changes_only_itself() -> None:
    mutant = load_changed(SOURCES, changes()["canonical returns ''"].changed(), LOADED)
    assert mutant.guardrail is not LOADED.guardrail
    kept = {name for name, module in mutant.modules.items() if module is LOADED.modules[name]}
    assert kept == {"tiltyard.guardrails.reference.spelling"}


def test_verdicts(some_episodes: list[Episode]) -> None:
    bench = Bench(SOURCES, some_episodes)
    noticed = bench.judge(changes()["_reason_against returns ''"])
    assert (noticed.verdict, noticed.looser > 0) == (Verdict.NOTICED, True)
    assert noticed.file == "reference/__init__.py"
    unused = bench.judge(
        changes()["drop 'trash' from ('delete', 'remove', 'erase', 'discard', 'tra..."]
    )
    assert (unused.verdict, unused.episodes) == (Verdict.EQUAL, 0)
    read = bench.judge(changes()["mentions_path returns True"])
    assert (read.verdict, read.looser > 0) == (Verdict.UNNOTICED, True)


def test_a_mutant_that_does_not_end_is_noticed(
    some_episodes: list[Episode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "PATIENCE_S", 0.2)
    hangs = changes()["if not skipped -> False"]
    judged_so = Bench(SOURCES, some_episodes[:2]).judge(hangs)
    assert judged_so.verdict is Verdict.NOTICED
    assert judged_so.example.startswith("does not end")


def test_episodes_that_never_reach_a_change_do_not_notice_it(some_episodes: list[Episode]) -> None:
    """The bench skips them, so they must decide like the reference."""
    bench = Bench(SOURCES, some_episodes)
    for change in list_changes(SOURCES)[::60]:
        mutant = load_changed(SOURCES, change.changed(), LOADED).guardrail
        for number in set(range(len(some_episodes))) - bench.reaching(change):
            assert first_difference(some_episodes[number], mutant) is None, change.what


@pytest.mark.soak
def test_a_match_notices_dangerous_mutants() -> None:
    bench = Bench(SOURCES, draw_episodes(settings(), LOADED.guardrail))
    found = {what: bench.judge(changes()[what]).verdict for what in DANGEROUS}
    assert found == dict.fromkeys(DANGEROUS, Verdict.NOTICED)
