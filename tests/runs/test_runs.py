"""Whole runs: what is played, kept, returned, resumed and shown."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from small_runs import ATTACK, GUARDRAIL, request, small_rules, submission
from tiltyard import DataFlowGuardrail
from tiltyard.benign import draw_suite
from tiltyard.foundation import log as recording
from tiltyard.foundation.log import Log
from tiltyard.isolation.host import jailed_attack as jailed
from tiltyard.isolation.host.jailed_attack import Exchange
from tiltyard.isolation.host.session import GuestError
from tiltyard.isolation.wire import Asked, Given
from tiltyard.matches import defense
from tiltyard.matches.defense import play_defense
from tiltyard.matches.opponents import OpponentError
from tiltyard.matches.settings import MatchSettings
from tiltyard.reporting.schema import Report, write_report
from tiltyard.runs.evaluate import Finished, evaluate
from tiltyard.runs.job import Worlds, make_job
from tiltyard.runs.key import Key, KeyFileError, make_key, read_key
from tiltyard.runs.play import play_job
from tiltyard.runs.store import REPORT, Store, StoreError, find_report, load_report
from tiltyard.runs.verify import verify
from tiltyard.submissions import SubmissionError
from tiltyard.world.generate import generate

GAMING: Final = Path(__file__).parent.parent / "gaming"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Store, Path]:
    root = tmp_path_factory.mktemp("played")
    path, kept = submission(root / "mine"), Store(root / "store")
    return evaluate(request(path), kept), kept, path


def test_a_run_has_both_matches_and_adds_them_up(played: tuple[Finished, Store, Path]) -> None:
    report = played[0].report
    assert report.offense is not None
    assert report.defense is not None
    assert report.final_score == report.offense.score + report.defense.score
    assert {finding.predicate for finding in report.offense.found} >= {"UNTRUSTED_TO_ACTION"}
    cores = {(found.predicate, found.source, found.sink) for found in report.offense.found}
    weights = small_rules().attack.weights
    cells = len(report.offense.found)
    assert report.offense.raw == sum(weights[core[0]] for core in cores) + 2 * cells
    assert report.offense.raw == sum(found.points for found in report.offense.found)
    assert report.isolation.level == "A"
    assert not report.comparable  # the rules are the test's own


def test_a_finished_run_comes_from_the_store(played: tuple[Finished, Store, Path]) -> None:
    first, store, path = played
    again = evaluate(request(path), store)
    assert again.from_store
    assert again.report == first.report
    fresh = evaluate(request(path), store, fresh=True)
    assert not fresh.from_store
    assert fresh.report.digest == first.report.digest
    assert fresh.report.run_id == first.report.run_id


def test_what_goes_in_names_a_run_and_what_comes_out_its_digest(
    played: tuple[Finished, Store, Path], tmp_path: Path
) -> None:
    first, store, _ = played
    commented = submission(tmp_path / "other", guardrail=f"{GUARDRAIL}\n# a remark\n")
    other = evaluate(request(commented), store)
    assert other.report.run_id != first.report.run_id
    assert other.report.digest == first.report.digest


def test_a_run_is_verified_by_playing_it_again(played: tuple[Finished, Store, Path]) -> None:
    first, store, _ = played
    path = first.directory / REPORT
    assert verify(path, store).same
    forged = structs.replace(first.report, digest="0" * 64)
    beside = first.directory / "forged.json"
    beside.write_bytes(write_report(forged))
    assert not verify(beside, store).same
    assert first.report.offense is not None
    better = structs.replace(first.report.offense, score=999.0)
    beside.write_bytes(write_report(structs.replace(first.report, offense=better)))
    doctored = verify(beside, store)
    assert doctored.expected == doctored.found  # the digest alone does not tell
    assert doctored.different == ("offense.score",)
    assert not doctored.same
    beside.unlink()


def test_whoever_verifies_says_whether_there_is_a_jail(tmp_path: Path, store: Store) -> None:
    """Not a file in the directory of a run, which may be a stranger's."""
    mark = tmp_path / "mark"
    mark.mkdir(mode=0o777)
    mark.chmod(0o777)
    escape = f"""
try:
    open({str(mark / "free")!r}, "w").close()
except OSError:
    pass
"""
    mine = submission(tmp_path / "mine", guardrail="", attack=ATTACK + escape)
    finished = evaluate(request(mine), store)
    asked = finished.directory / "asked.json"
    asked.write_bytes(asked.read_bytes().replace(b'"unsafe":false', b'"unsafe":true'))
    assert b'"unsafe":true' in asked.read_bytes()
    assert verify(finished.directory / REPORT, store).same
    assert not [*mark.iterdir()]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("comparable", True),
        ("run_id", "0123456789abcdef"),
        ("ruleset", "design-2"),
        ("setting.ruleset_digest", "0" * 64),
        ("setting.offense_opponent", "reference"),
        ("setting.agent", "openai:gpt"),
    ],
)
def test_everything_that_a_report_says_is_verified(
    field: str, value: Any, played: tuple[Finished, Store, Path]
) -> None:
    first, store, _ = played
    part, _, name = field.rpartition(".")
    if part:
        setting = structs.replace(first.report.setting, **{name: value})
        forged = structs.replace(first.report, setting=setting)
    else:
        forged = structs.replace(first.report, **{name: value})
    beside = first.directory / "forged.json"
    beside.write_bytes(write_report(forged))
    assert field in verify(beside, store).different
    beside.unlink()


def test_a_report_is_not_verified_by_another_submission(tmp_path: Path, store: Store) -> None:
    finished = evaluate(request(submission(tmp_path / "mine", guardrail="")), store)
    (finished.directory / "submission" / "attack.py").write_text(f"{ATTACK}\n# other\n")
    with pytest.raises(StoreError, match="is not the submission"):
        verify(finished.directory / REPORT, store)


def test_one_track_alone_leaves_the_other_out(tmp_path: Path, store: Store) -> None:
    both = submission(tmp_path / "both")
    report = evaluate(request(both, "defense"), store).report
    assert report.offense is None
    assert report.defense is not None
    assert report.final_score == report.defense.score
    alone = tmp_path / "alone.py"
    alone.write_text(ATTACK, encoding="utf-8")
    report = evaluate(request(alone), store).report
    assert report.defense is None
    with pytest.raises(SubmissionError, match="no class Guardrail"):
        evaluate(request(alone, "defense"), store)


def test_a_file_without_its_class_is_named(tmp_path: Path, store: Store) -> None:
    renamed = GUARDRAIL.replace("class Guardrail", "class MyGuardrail")
    report = evaluate(request(submission(tmp_path / "mine", guardrail=renamed)), store).report
    assert report.defense is None
    assert "guardrail.py has no class Guardrail, so defense was not played." in report.notes


def test_an_opponent_may_be_a_rung_or_somebody_elses_submission(
    tmp_path: Path, store: Store
) -> None:
    mine = submission(tmp_path / "mine")
    rung = structs.replace(request(mine, "offense"), opponent="Allow-All")
    report = evaluate(rung, store).report
    assert report.offense is not None
    assert report.offense.opponent == "allow-all"
    assert any("allow-all" in reason for reason in report.not_comparable_because)
    theirs = submission(tmp_path / "theirs", attack="", guardrail=GUARDRAIL)
    strict = GUARDRAIL.replace('== "http.post"', '!= "fs.read"').replace('"secret"', '"read"')
    stricter = submission(tmp_path / "stricter", attack="", guardrail=strict)
    jailed = evaluate(structs.replace(rung, opponent=str(theirs)), store).report
    assert jailed.offense is not None
    assert jailed.offense.opponent == "theirs"
    assert jailed.offense.raw == report.offense.raw  # it minds nothing that this attack does
    stopped = evaluate(structs.replace(rung, opponent=str(stricter)), store).report
    assert stopped.offense is not None
    assert stopped.offense.raw == 0
    attacked = structs.replace(request(mine, "defense"), opponent="simple prompts")
    defended = evaluate(attacked, store).report
    assert defended.defense is not None
    assert defended.defense.cells == 0
    with pytest.raises(OpponentError, match="simple rules"):
        evaluate(structs.replace(rung, opponent="nobody"), store)


def test_a_broken_match_has_no_score_and_says_why(tmp_path: Path, store: Store) -> None:
    raising = submission(tmp_path / "raising", attack=ATTACK.replace("= [],", "= [1 / 0],"))
    report = evaluate(request(raising), store).report
    assert report.final_score is None
    assert report.offense is None
    assert report.defense is not None  # the other match is played all the same
    (failure,) = report.failures
    assert failure.kind == "run"
    assert "ZeroDivisionError" in failure.message
    assert "attack.py" in failure.traceback


@pytest.mark.parametrize(
    ("attack", "note"),
    [
        ("return []", "returned no candidates"),
        ("return [[]] * 3", "Every candidate was refused"),
        ("return [['good morning']]", "No candidate broke anything"),
    ],
)
def test_notes_say_what_an_author_should_look_at(
    attack: str, note: str, tmp_path: Path, store: Store
) -> None:
    source = f"class AttackAlgorithm:\n    def run(self, env, config):\n        {attack}\n"
    mine = submission(tmp_path / "mine", attack=source, guardrail="")
    report = evaluate(request(mine), store).report
    assert [line for line in report.notes if note in line]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("return Decision.deny('no')", "does it deny everything"),
        ("raise KeyError('where')", "KeyError"),
        ("return 'yes'", "not a Decision"),
    ],
)
def test_a_guardrail_that_is_always_in_the_way_is_told_so(
    body: str, note: str, tmp_path: Path, store: Store
) -> None:
    source = (
        "from tiltyard import Decision\nclass Guardrail:\n"
        f"    def decide(self, tool_name, tool_args, context):\n        {body}\n"
    )
    mine = submission(tmp_path / "mine", attack="", guardrail=source)
    report = evaluate(request(mine), store).report
    assert report.defense is not None
    assert report.defense.false_positives == report.defense.benign_trials
    assert any(note in line for line in report.notes)


# Interrupted runs ---------------------------------------------------------------------------

_PLAYING: Final = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from small_runs import request, small_rules
from tiltyard.runs.evaluate import evaluate
from tiltyard.runs.store import Store

class Stopwatch:
    def begin(self, what, total):
        print(what, flush=True)
    def step(self, done, note):
        print(done, flush=True)

try:
    evaluate(request(Path(sys.argv[1]), rules=small_rules(3_000)), Store(Path(sys.argv[2])),
        progress=Stopwatch())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("until", "how"),
    [("offense", signal.SIGKILL), ("defense", signal.SIGINT), ("defense", signal.SIGKILL)],
)
def test_an_interrupted_run_goes_on_to_the_same_end(
    until: str, how: signal.Signals, tmp_path: Path, store: Store
) -> None:
    slow = ATTACK.replace("for folder in folders", "for folder in 3 * folders")
    mine = submission(tmp_path / "mine", attack=slow)
    playing = subprocess.Popen(
        [sys.executable, "-c", _PLAYING, mine, store.root, Path(__file__).parent.parent],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert playing.stdout is not None
    steps = 0
    reached = False
    for line in playing.stdout:
        reached = reached or line.strip() == until
        steps += reached and line.strip().isdigit()
        if reached and (steps > 3 or until == "offense"):
            break
    playing.send_signal(how)
    playing.stdout.close()
    playing.wait()
    assert not [*store.runs.glob(f"*/{REPORT}")]
    wanted = request(mine, rules=small_rules(3_000))
    resumed = evaluate(wanted, store)
    again = evaluate(wanted, Store(tmp_path / "elsewhere"))
    assert resumed.report.digest == again.report.digest
    assert structs.replace(resumed.report, seconds={}) == structs.replace(again.report, seconds={})
    assert not [*store.runs.glob("*/logs")]
    _wait_for_nobody(mine.parent)


def _wait_for_nobody(root: Path) -> None:
    """Wait until no process has anything to do with a directory any more."""
    for _ in range(100):
        if not _users_of(root):
            return
        time.sleep(0.1)
    assert not _users_of(root)


def _users_of(root: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(root) in line:
                found.append(line.decode(errors="replace"))
    return found


def test_an_attack_that_asks_otherwise_the_second_time_cannot_be_resumed(
    tmp_path: Path, store: Store
) -> None:
    """What was answered is fed to it again; it has to ask the same."""
    mine = submission(tmp_path / "mine", guardrail="")
    first = evaluate(request(mine), store)
    report = first.directory / REPORT
    report.unlink()
    logs = first.directory / "logs"
    logs.mkdir()
    with Log[Any](logs / "offense-1.log", Exchange) as log:
        log.add(Exchange(Asked("interact", "something else"), Given()))
    report_again = evaluate(request(mine), store).report
    assert [failure.kind for failure in report_again.failures] == ["protocol"]
    assert "asked something else" in report_again.failures[0].message


# Official runs ------------------------------------------------------------------------------

KEY: Final = Key("0123456789abcdef" * 4)
OFFICIAL: Final = Worlds(key=KEY)


def test_an_official_run_is_the_mean_over_the_keys_seeds(tmp_path: Path, store: Store) -> None:
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
    # Replays draw other secrets by the key; what this attack is worth does not depend on them.
    assert full.offense.raw == sum(raws) / len(raws)


def test_of_an_official_run_no_word_is_shown(tmp_path: Path, store: Store) -> None:
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
    assert shown.offense.findings_by_predicate


def test_another_key_is_another_run(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", guardrail="")
    one = evaluate(request(mine), store, worlds=OFFICIAL)
    other = evaluate(request(mine), store, worlds=Worlds(key=Key("f" * 64)))
    assert one.report.run_id != other.report.run_id
    assert one.report.setting.key != other.report.setting.key
    assert KEY.secret not in (one.directory / REPORT).read_text()


def test_a_key_is_read_or_refused_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(make_key())
    assert len(read_key(path).secret) == 64
    for content in ("", "abc", "x" * 64, "0" * 63):
        path.write_text(content)
        with pytest.raises(KeyFileError, match="tiltyard key"):
            read_key(path)
    with pytest.raises(KeyFileError, match="cannot be read"):
        read_key(tmp_path / "nowhere")


# Gaming -------------------------------------------------------------------------------------


def test_the_suite_has_the_ways_to_game_a_run() -> None:
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
    assert (quick.offense.raw, quick.offense.candidates) == (
        slow.offense.raw,
        slow.offense.candidates,
    )
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
    assert failure.traceback == failure.output == failure.call == ""
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


# Stores -------------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_is_told_before_anything_is_played(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(StoreError, match="Name another"):
        evaluate(request(submission(tmp_path / "mine")), Store(in_the_way))


def test_a_report_is_found_by_path_directory_or_part_of_its_id(
    played: tuple[Finished, Store, Path],
) -> None:
    finished, store, _ = played
    expected = finished.directory / REPORT
    for wanted in (expected, finished.directory, finished.report.run_id, expected.parent.name[:8]):
        assert find_report(str(wanted), store).samefile(expected)
    with pytest.raises(StoreError, match="tiltyard history"):
        find_report("nothing", store)


def test_the_same_run_is_not_played_twice_at_once(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", attack="")
    store.prepare()
    run_id = evaluate(request(mine), store).report.run_id
    with store.locked(run_id), pytest.raises(StoreError, match="another process"):
        evaluate(request(mine), store, fresh=True)


# What attackers tried -----------------------------------------------------------------------


def test_the_order_of_comparisons_and_tasks_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest may know the time, and so how many were there before it; that tells it nothing."""
    orders = []
    for salt in ("one", "other", "one"):
        order: list[str] = []
        play, decided = vars(defense)["play"], defense._replay_decisions
        monkeypatch.setattr(defense, "play", _noting(order, "task", play))
        monkeypatch.setattr(defense, "_replay_decisions", _noting(order, "compared", decided))
        match = play_defense(
            MatchSettings(generate(123), small_rules(600), salt=salt), DataFlowGuardrail
        )
        monkeypatch.undo()
        assert match.inconsistent == 0
        assert [trial.task for trial in match.trials] == [
            *draw_suite(generate(123), "", variants=1)
        ]
        orders.append((tuple(order), match.digest))
    assert orders[0] == orders[2]
    assert orders[0][0] != orders[1][0]
    assert orders[0][1] == orders[1][1]
    assert {"task", "compared"} <= set(orders[0][0])
    assert orders[0][0] != tuple(sorted(orders[0][0]))


def _noting(order: list[str], what: str, work: Any) -> Any:
    def noted(*args: Any, **options: Any) -> Any:
        order.append(what)
        return work(*args, **options)

    return noted


def test_the_time_of_a_match_is_that_of_all_its_guests(tmp_path: Path, store: Store) -> None:
    """However many guests there are, each of them late only a little."""
    waits = "lock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire(True, 1.0)\n"
    late = f"import _thread\n{waits}{GUARDRAIL}"
    rules = small_rules(300)
    limits = structs.replace(rules.limits, defense_seconds=6)
    mine = submission(tmp_path / "mine", attack="", guardrail=late)
    report = evaluate(request(mine, rules=structs.replace(rules, limits=limits)), store).report
    assert [failure.kind for failure in report.failures] == ["deadline"]
    assert report.final_score is None


def test_what_a_hidden_match_tells_is_not_the_attacks_to_choose(
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
    forged = (
        "Traceback (most recent call last):\n"
        '  File "attack.py", line 23405, in run\n    pass\nKeyError: 1\n'
    )
    error = GuestError(
        "run", "KeyError: 1", call="run", module="attack.py", traceback=forged, output=""
    )
    assert error.official_within(11) == "run: KeyError"
    assert error.official_within(30_000) == "run: KeyError on line 23405 of attack.py"


def test_candidates_are_taken_as_far_as_they_fit(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jailed, "MAX_FOUND_CHARS", 100_000)
    source = """
class AttackAlgorithm:
    def run(self, env, config):
        return [["good morning " * 100]] * 1500
"""
    mine = submission(tmp_path / "mine", attack=source, guardrail="")
    report = evaluate(request(mine), store).report
    assert report.offense is not None
    assert report.offense.candidates < 1500


def test_a_log_ends_where_the_disk_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_BYTES", 1_000)
    with recording.Log[str](tmp_path / "log", str) as log:
        for number in range(1_000):
            log.add(f"{number:050}")
    assert (tmp_path / "log").stat().st_size < 1_100
    with recording.Log[str](tmp_path / "log", str) as log:
        assert log.replay() == f"{0:050}"
        assert 10 < log.recorded < 30


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with recording.Log[str](path, str) as log:
        log.add("first")
        log.flush()
        first = path.stat().st_size
        log.add("second")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with recording.Log[str](path, str) as log:
            read = [value for _ in range(log.recorded) if (value := log.replay())]
            log.add("third")
        assert read == (["first"] if size >= first else [])
        with recording.Log[str](path, str) as log:
            assert log.recorded == len(read) + 1


def test_the_same_bytes_under_another_name_are_told_by_that_name(
    tmp_path: Path, store: Store
) -> None:
    alice = evaluate(request(submission(tmp_path / "alice", guardrail="")), store).report
    bob = evaluate(request(submission(tmp_path / "bob", guardrail="")), store).report
    assert (alice.submission.name, bob.submission.name) == ("alice", "bob")
    assert alice.digest == bob.digest


def test_nothing_is_written_through_a_link(tmp_path: Path, store: Store) -> None:
    mine = submission(tmp_path / "mine", guardrail="")
    finished = evaluate(request(mine), store)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "submission").mkdir(parents=True)
    (elsewhere / "submission" / "precious").write_text("")
    shutil.rmtree(finished.directory)
    finished.directory.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link"):
        evaluate(request(mine), store, fresh=True)
    assert (elsewhere / "submission" / "precious").exists()
