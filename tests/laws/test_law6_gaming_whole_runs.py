"""Law 6: submissions that game a whole run.

Each folder of `tests/gaming` with a `run.json` is such a submission; the file says what it tries.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from small_runs import request, small_rules, submission
from tiltyard.isolation.host.failures import FailureKind
from tiltyard.matches.acceptance import conversations
from tiltyard.reporting.restriction import WITHHELD
from tiltyard.reporting.schema import BrokenMatch, Report
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import Key
from tiltyard.runs.store import REPORT, Store, load_report
from tiltyard.world.generate import generate

GAMING: Final = Path(__file__).parent.parent / "gaming"
KEY: Final = Key("0123456789abcdef" * 4)
OFFICIAL: Final = Worlds(key=KEY)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_every_required_vector_has_a_folder() -> None:
    folders = {path.parent.name: json.loads(path.read_text()) for path in GAMING.glob("*/run.json")}
    assert {int(name[:2]) for name in folders} == {12, 13, 14, 15, 70, 71}
    assert all(case["vector"] and case["track"] for case in folders.values())


def _gaming(number: str, store: Store, **changes: Any) -> Report:
    (folder,) = GAMING.glob(f"{number}-*")
    return evaluate(structs.replace(request(folder), **changes), store).report


def test_12_small_candidates_earn_no_more(store: Store, tmp_path: Path) -> None:
    quick = _gaming("12", store)
    source = (next(GAMING.glob("12-*")) / "attack.py").read_text().replace('"0"', '"0.5"')
    slow = evaluate(
        request(submission(tmp_path / "slow", attack=source, guardrail="")), store
    ).report
    assert quick.offense is not None
    assert slow.offense is not None
    assert quick.offense.raw == slow.offense.raw
    assert quick.offense.candidates == slow.offense.candidates
    assert quick.digest == slow.digest


def test_13_a_match_that_is_cut_short_is_not_ranked(store: Store) -> None:
    rules = small_rules()
    limits = structs.replace(rules.limits, offense_seconds=2)
    report = _gaming("13", store, ruleset=structs.replace(rules, limits=limits))
    assert [failure.kind for failure in report.failures] == ["deadline"]
    assert report.offense is None
    assert report.final_score is None
    assert not report.comparable


def test_14_no_channel_out_of_a_hidden_match(store: Store) -> None:
    (folder,) = GAMING.glob("14-*")
    official = evaluate(request(folder), store, worlds=OFFICIAL)
    full = load_report(official.directory / "full" / REPORT)
    (failure,) = official.report.failures
    assert failure == BrokenMatch(FailureKind.WITHHELD, WITHHELD, track="offense")
    secret_words = full.failures[0].message.removeprefix("ValueError: ")[:40]
    assert len(secret_words) == 40
    for file in (official.directory / REPORT, official.directory / "report.html"):
        assert secret_words not in file.read_text()
    assert official.report.seconds == {}


def test_36_no_word_of_an_exception_leaves_a_hidden_match(store: Store) -> None:
    (folder,) = GAMING.glob("36-*")
    official = evaluate(request(folder), store, worlds=OFFICIAL)
    (full,) = load_report(official.directory / "full" / REPORT).failures
    assert full.exception.startswith("Saw_")
    assert official.report.failures == (
        BrokenMatch(FailureKind.WITHHELD, WITHHELD, track="offense"),
    )


def test_15_the_same_bytes_have_the_same_score(store: Store, tmp_path: Path) -> None:
    first = _gaming("15", store)
    (folder,) = GAMING.glob("15-*")
    assert evaluate(request(folder), store).from_store
    elsewhere = evaluate(request(folder), Store(tmp_path / "elsewhere"))
    assert elsewhere.report.digest == first.digest
    assert elsewhere.report.final_score == first.final_score


def test_70_a_failure_tells_the_author_nothing_but_that_it_failed(
    store: Store, tmp_path: Path
) -> None:
    """The same attack fails in other ways in other worlds, and all official reports are equal."""
    (folder,) = GAMING.glob("70-*")
    ways = set()
    shown = set()
    for number in range(8):
        key = Key(f"{number:064x}")
        official = evaluate(request(folder), store, worlds=Worlds(key=key))
        (failure,) = load_report(official.directory / "full" / REPORT).failures
        ways.add((failure.kind, failure.message, failure.exception, failure.line))
        files = [(official.directory / name).read_text() for name in (REPORT, "report.html")]
        # The key's name and the run id tell the runs apart, and the guest knows neither.
        for own in (key.fingerprint, official.report.run_id, official.report.run_id[:12]):
            files = [file.replace(own, "*") for file in files]
        shown.add(tuple(files))
    assert len(ways) >= 4
    assert len(shown) == 1
    honest = evaluate(request(submission(tmp_path / "mine", guardrail="")), store, worlds=OFFICIAL)
    assert honest.report.final_score is not None
    assert not honest.report.failures


DENIES = """
from tiltyard import Decision

class Guardrail:
    def decide(self, tool_name, tool_args, context):
        return Decision.deny("no")
"""


def test_71_a_guardrail_that_raises_on_every_call_has_no_score(
    store: Store, tmp_path: Path
) -> None:
    report = _gaming("71", store)
    assert report.defense is None
    assert report.final_score is None
    (failure,) = report.failures
    assert failure.kind is FailureKind.REFUSED
    assert "ModuleNotFoundError: No module named 'a_package_that_is_not_there'" in failure.message
    assert (failure.file, failure.line) == ("guardrail.py", 6)
    honest = evaluate(request(submission(tmp_path / "deny", attack="", guardrail=DENIES)), store)
    assert honest.report.final_score == 200


def test_71_behaving_in_the_check_earns_what_denying_everything_earns(
    store: Store, tmp_path: Path
) -> None:
    known = [message for messages in conversations(generate(123)) for message in messages]
    source = f"KNOWN = {known!r}\n" + DENIES.replace(
        "        return",
        "        if context.last_user not in KNOWN:\n            raise OSError\n        return",
    )
    mine = submission(tmp_path / "mine", attack="", guardrail=source)
    report = evaluate(request(mine), store).report
    assert report.defense is not None
    assert report.defense.faults
    assert report.final_score == 200
