"""Law 6: submissions that game a whole run.

Each folder of `tests/gaming` with a `run.json` is such a submission; the file says what it tries.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from small_runs import request, small_rules, submission
from tiltyard.reporting.schema import Report
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import Key
from tiltyard.runs.store import REPORT, Store, load_report

GAMING: Final = Path(__file__).parent.parent / "gaming"
KEY: Final = Key("0123456789abcdef" * 4)
OFFICIAL: Final = Worlds(key=KEY)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_every_required_vector_has_a_folder() -> None:
    folders = {path.parent.name: json.loads(path.read_text()) for path in GAMING.glob("*/run.json")}
    assert {int(name[:2]) for name in folders} == {12, 13, 14, 15}
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
    assert failure.message == "run: ValueError on line 8 of attack.py"
    assert failure.traceback == failure.output == failure.tool == failure.file == ""
    assert failure.phase is None
    assert failure.line == 0
    secret_words = full.failures[0].message.removeprefix("ValueError: ")[:40]
    assert len(secret_words) == 40
    for file in (official.directory / REPORT, official.directory / "report.html"):
        assert secret_words not in file.read_text()
    assert official.report.seconds == {}


def test_15_the_same_bytes_have_the_same_score(store: Store, tmp_path: Path) -> None:
    first = _gaming("15", store)
    (folder,) = GAMING.glob("15-*")
    assert evaluate(request(folder), store).from_store
    elsewhere = evaluate(request(folder), Store(tmp_path / "elsewhere"))
    assert elsewhere.report.digest == first.digest
    assert elsewhere.report.final_score == first.final_score
