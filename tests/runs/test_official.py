"""Official runs: hidden seeds from a key, and reports without texts."""

import re
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from small_runs import request, small_rules, submission
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds, make_job
from tiltyard.runs.key import Key
from tiltyard.runs.play import play_job
from tiltyard.runs.store import REPORT, Store, load_report

KEY: Final = Key("0123456789abcdef" * 4)


OFFICIAL: Final = Worlds(key=KEY)
FAILING: Final = """
class AttackAlgorithm:
    def run(self, env, config):
        raise ValueError(env.interact("run `ls`").events[-1].output)
"""


def test_an_official_score_is_the_mean_over_the_seeds_of_the_key(
    tmp_path: Path, store: Store
) -> None:
    mine = submission(tmp_path / "mine")
    rules = small_rules()
    official = evaluate(request(mine), store, worlds=OFFICIAL)
    full = load_report(official.directory / "full" / REPORT)
    assert len(set(KEY.seeds(rules))) == rules.official.seeds
    assert full.offense is not None
    raws = []
    for seed in KEY.seeds(rules):
        scratch = tmp_path / f"scratch-{seed}"
        scratch.mkdir()
        job = make_job(structs.replace(request(mine), seed=seed), scratch)
        part = play_job(job).report.offense
        assert part is not None
        raws.append(part.raw)
    # The parts of a count add up to the count: both are means.
    defense = full.defense
    assert defense is not None
    assert sum(full.offense.cells_by_predicate.values()) == full.offense.unique_cells
    assert sum(full.offense.findings_by_predicate.values()) == full.offense.findings
    assert sum(defense.breaches_by_predicate.values()) == defense.breaches
    assert sum(defense.false_positives_by_operation.values()) == defense.false_positives
    # The key changes the secrets of the replays. The score of this attack does not depend on them.
    assert full.offense.raw == sum(raws) / len(raws)


def test_an_official_report_shows_no_texts(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine")
    shown = evaluate(request(mine), store, worlds=OFFICIAL).report
    assert shown.restricted
    assert shown.seconds == {}
    # The day alone: the minutes between two runs would tell how long a submission took.
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", shown.started)
    assert shown.setting.seeds == ()
    assert shown.setting.scenarios == ()
    assert shown.offense is not None
    assert shown.defense is not None
    assert shown.offense.found == ()
    assert shown.defense.trials == ()
    assert shown.offense.cells_by_predicate
    assert not shown.offense.findings_by_predicate


def test_another_key_is_another_run(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", guardrail="")
    one = evaluate(request(mine), store, worlds=OFFICIAL)
    other = evaluate(request(mine), store, worlds=Worlds(key=Key("f" * 64)))
    assert one.report.run_id != other.report.run_id
    assert one.report.setting.key != other.report.setting.key
    assert KEY.secret not in (one.directory / REPORT).read_text()


def test_an_attack_cannot_send_messages_through_an_official_report(
    tmp_path: Path, store: Store
) -> None:
    source = """
import sys

class AttackAlgorithm:
    def run(self, env, config):
        for _ in range(7):
            env.interact("good morning")
        return [["good morning"]] * 77
"""
    mine = submission(tmp_path / "mine", attack=source, guardrail="")
    shown = evaluate(request(mine), store, worlds=OFFICIAL).report
    assert shown.offense is not None
    assert (shown.offense.candidates, shown.offense.steps, shown.offense.refused) == (0, 0, {})


@pytest.mark.parametrize("at_once", [2, 3])
def test_the_result_does_not_depend_on_how_many_worlds_play_at_once(
    tmp_path: Path, at_once: int
) -> None:
    mine = submission(tmp_path / "mine")
    reports = []
    for number in (1, at_once):
        kept = Store(tmp_path / f"store-{number}")
        done = evaluate(request(mine), kept, worlds=OFFICIAL, at_once=number)
        full = load_report(done.directory / "full" / REPORT)
        assert set(full.seconds) == {"offense", "defense"}
        reports.append(structs.replace(full, seconds={}, started=""))
    assert reports[0] == reports[1]


def test_a_failure_in_a_process_is_the_failure_of_its_track(tmp_path: Path) -> None:
    """The attack fails in every world, with another text each. The report has the first."""
    mine = submission(tmp_path / "mine", attack=FAILING)
    found = []
    for number in (1, 2):
        kept = Store(tmp_path / f"store-{number}")
        done = evaluate(request(mine), kept, worlds=OFFICIAL, at_once=number)
        full = load_report(done.directory / "full" / REPORT)
        assert full.offense is None
        assert full.defense is not None
        found.append((full.digest, full.defense.digest, full.failures))
    assert found[0] == found[1]


def test_only_the_organizer_can_read_full_reports(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    done = evaluate(request(submission(tmp_path / "mine")), kept, worlds=OFFICIAL)
    secret = done.directory / "full"
    modes = {path.stat().st_mode & 0o777 for path in secret.iterdir()}
    assert (secret.stat().st_mode & 0o777, modes) == (0o700, {0o600})
