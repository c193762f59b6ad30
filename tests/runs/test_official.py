"""Official runs: hidden seeds from a key, and reports without texts."""

from pathlib import Path
from typing import Final

from msgspec import structs

from small_runs import request, small_rules, submission
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.job import Worlds, make_job
from tiltyard.runs.key import Key
from tiltyard.runs.play import play_job
from tiltyard.runs.store import REPORT, Store, load_report

KEY: Final = Key("0123456789abcdef" * 4)


OFFICIAL: Final = Worlds(key=KEY)


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
    # The key changes the secrets of the replays. The score of this attack does not depend on them.
    assert full.offense.raw == sum(raws) / len(raws)


def test_an_official_report_shows_no_texts(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine")
    shown = evaluate(request(mine), store, worlds=OFFICIAL).report
    assert shown.restricted
    assert shown.seconds == {}
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
