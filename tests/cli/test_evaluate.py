"""`tiltyard evaluate`: its output, and a sentence for every error."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from small_runs import ATTACK, GUARDRAIL, SMALL_RULESET, submission

TILTYARD = Path(sys.executable).with_name("tiltyard")


def tiltyard(
    *args: object, cwd: Path, code: int = 0, columns: int = 120
) -> subprocess.CompletedProcess[str]:
    line = [str(TILTYARD), *map(str, args)]
    env = os.environ | {"COLUMNS": str(columns)}
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def quickly(tmp_path: Path) -> tuple[str, ...]:
    """Return the options that keep a match short."""
    (tmp_path / "small.toml").write_text(SMALL_RULESET, encoding="utf-8")
    return ("--budget", "quick", "--ruleset", "small.toml")


def test_json_has_the_documented_fields(tmp_path: Path, quickly: tuple[str, ...]) -> None:
    submission(tmp_path / "mine")
    done = tiltyard("evaluate", "mine", *quickly, "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert {"score", "raw", "score_volume", "findings", "unique_cells"} <= told["offense"].keys()
    assert {"score", "breaches", "false_positives", "benign_trials"} <= told["defense"].keys()
    assert told["final_score"] == told["offense"]["score"] + told["defense"]["score"]
    assert told["isolation"]["level"] == "A"
    assert told["comparable"] is False
    assert "the budget is quick, not official" in told["not_comparable_because"]
    assert told["ruleset"] == "small-1"
    assert len(told["run_id"]) == 16
    assert len(told["digest"]) == 64
    # A pipe gets lines, no bar.
    assert {"offense", "defense"} <= {*done.stderr.splitlines()}
    assert "\x1b" not in done.stderr
    page = tmp_path / ".tiltyard" / "runs" / told["run_id"] / "report.html"
    assert page.is_file()
    again = tiltyard("evaluate", "mine", *quickly, cwd=tmp_path)
    assert "From the store" in again.stdout
    assert str(page.relative_to(tmp_path)) in again.stdout
    verified = tiltyard("verify", told["run_id"][:8], cwd=tmp_path)
    assert verified.stdout == f"the same: {told['digest']}\n"


def test_a_track_that_was_not_played_is_null(tmp_path: Path, quickly: tuple[str, ...]) -> None:
    (tmp_path / "guardrail.py").write_text(GUARDRAIL, encoding="utf-8")
    line = ("evaluate", "guardrail.py", "--track", "defense", *quickly, "--json")
    told = json.loads(tiltyard(*line, cwd=tmp_path).stdout)
    assert told["offense"] is None
    assert told["defense"]["score"] == told["final_score"]


def test_a_track_has_an_alias_that_help_does_not_show(
    tmp_path: Path, quickly: tuple[str, ...]
) -> None:
    submission(tmp_path / "mine")
    line = ("evaluate", "mine", *quickly, "--json", "--track")
    first, second = (
        tiltyard(*line, name, cwd=tmp_path).stdout for name in ("defense", "guardrail")
    )
    assert json.loads(first) == json.loads(second)
    assert json.loads(first)["offense"] is None
    assert json.loads(tiltyard(*line, "attack", cwd=tmp_path).stdout)["defense"] is None
    helped = tiltyard("evaluate", "--help", cwd=tmp_path).stdout
    assert "offense|defense" in helped
    assert "|guardrail" not in helped
    wrong = " ".join(tiltyard(*line, "x", cwd=tmp_path, code=2).stderr.replace("│", "").split())
    assert "unknown track 'x'; expected offense or defense" in wrong


def test_output_fits_80_columns_and_explains_its_words(
    tmp_path: Path, quickly: tuple[str, ...]
) -> None:
    submission(tmp_path / "mine")
    shown = tiltyard("evaluate", "mine", *quickly, cwd=tmp_path, columns=80).stdout
    # A pipe does not wrap sentences: the reader's program does.
    lines = [line for line in shown.splitlines() if not line.startswith("not comparable:")]
    assert max(map(len, lines)) <= 80
    for word in ("core:", "cell:", "raw:", "breach:", "docs/glossary.md"):
        assert word in shown


def test_the_output_of_the_submission_is_printed_on_request(
    tmp_path: Path, quickly: tuple[str, ...]
) -> None:
    loud = ATTACK.replace("found, folders", 'print("one\\n\\x1b[2Jtwo")\n        found, folders')
    (tmp_path / "attack.py").write_text(loud, encoding="utf-8")
    line = ("evaluate", "attack.py", *quickly)
    silent = tiltyard(*line, cwd=tmp_path).stdout
    assert "The attack printed 2 lines; see --output." in silent
    assert "two" not in silent
    shown = tiltyard(*line, "--output", cwd=tmp_path).stdout
    assert "The attack printed:\n  one\n  �[2Jtwo\n" in shown
    told = json.loads(tiltyard(*line, "--output", "--json", cwd=tmp_path).stdout)
    assert told["output"] == {"offense": "one\n�[2Jtwo"}
    assert "output" not in json.loads(tiltyard(*line, "--json", cwd=tmp_path).stdout)


def test_other_seeds_are_printed(tmp_path: Path, quickly: tuple[str, ...]) -> None:
    (tmp_path / "attack.py").write_text(ATTACK, encoding="utf-8")
    shown = tiltyard("evaluate", "attack.py", *quickly, "--seeds", "2", cwd=tmp_path)
    assert "Scores by seed" in shown.stdout
    assert "lowest" in shown.stdout


def test_a_failed_match_exits_with_one_and_prints_the_line(tmp_path: Path) -> None:
    source = "class AttackAlgorithm:\n    def run(self, env, config):\n        return 1 / 0\n"
    (tmp_path / "attack.py").write_text(source + "import tiltyard\n", encoding="utf-8")
    done = tiltyard("evaluate", "attack.py", "--budget", "quick", cwd=tmp_path, code=1)
    assert "ZeroDivisionError" in done.stdout
    assert "line 3" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nowhere", "does not exist"),
        ("text.zip", "zip"),
        ("empty", "class"),
        ("attack.py --track defense", "no class Guardrail"),
        ("attack.py --opponent nobody", "there is no guardrail 'nobody'"),
        ("attack.py --ruleset nonsense", "there are arena, demo-llm, design, design-openai"),
        ("attack.py --ruleset broken.toml", "not a ruleset"),
        ("attack.py --ruleset missing.toml", "cannot be read"),
        ("attack.py --key broken.toml", "tiltyard key FILE"),
        (
            "attack.py --agent parrot",
            "openai:MODEL or package.module:Class",
        ),
        (
            "attack.py --agent openai:",
            "openai:MODEL or package.module:Class",
        ),
        ("attack.py --agent local --ruleset design", "no [model] table"),
        ("attack.py --agent local --base-url http://127.0.0.1:1/v1", "--base-url is for"),
        ("attack.py --agent openai:x --base-url ftp://a/v1", "must be an address such as"),
        ("attack.py --agent openai:x --base-url http://me:pw@a/v1", "OPENAI_API_KEY"),
        ("attack.py --agent openai:x --max-cost 1", "--max-cost needs --price"),
        ("attack.py --agent openai:x --max-cost 1 --price cheap", "--price is two numbers"),
        ("attack.py --agent openai:x --max-cost inf --price 1,1", "--max-cost is at most"),
        ("attack.py --max-requests 5", "are for language models"),
        ("attack.py --scenario empty", "does not exist"),
        ("attack.py --store text.zip", "Choose another directory with --store"),
    ],
)
def test_wrong_use_is_explained_in_one_sentence(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "attack.py").write_text(ATTACK, encoding="utf-8")
    (tmp_path / "text.zip").write_text("no zip", encoding="utf-8")
    (tmp_path / "broken.toml").write_text("name = 1", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    done = tiltyard("evaluate", *line.split(), cwd=tmp_path, code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    submission(tmp_path / "mine")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], check=True)
    try:
        line = ("evaluate", "mine", "--budget", "quick", "--store", disk / "store")
        done = tiltyard(*line, cwd=tmp_path, code=2)
        assert "the disk is full" in done.stderr or "No space left" in done.stderr
        assert not [*disk.rglob("report.json")]
        assert not [*disk.rglob(".report*")]
    finally:
        subprocess.run(["/bin/umount", disk], check=True)


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    tiltyard("key", "mine.key", cwd=tmp_path)
    assert (tmp_path / "mine.key").stat().st_mode & 0o077 == 0
    assert "exists" in tiltyard("key", "mine.key", cwd=tmp_path, code=2).stderr


BUSY = """
class AttackAlgorithm:
    def run(self, env, config):
        env.interact("run echo")
        sum(range(6 * 10**7))
        return [["read file readme"]]
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_stops_a_run_and_the_same_command_continues_it(
    tmp_path: Path, quickly: tuple[str, ...], sent: signal.Signals
) -> None:
    submission(tmp_path / "mine", attack=BUSY, guardrail="")
    line = [str(TILTYARD), "evaluate", "mine", *quickly]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as playing:
        wait_for_logs(tmp_path)
        playing.send_signal(sent)
        _, said = playing.communicate()
    assert playing.returncode == 130
    assert said.splitlines()[-1] == "interrupted; run the same command to continue"
    check_nothing_is_left(tmp_path)
    tiltyard("evaluate", "mine", *quickly, cwd=tmp_path)


def test_closing_the_terminal_stops_a_run_cleanly(tmp_path: Path, quickly: tuple[str, ...]) -> None:
    submission(tmp_path / "mine", attack=BUSY, guardrail="")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execv(TILTYARD, [str(TILTYARD), "evaluate", "mine", *quickly])  # noqa: S606
    wait_for_logs(tmp_path)
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    check_nothing_is_left(tmp_path)
    tiltyard("evaluate", "mine", *quickly, cwd=tmp_path)


def wait_for_logs(place: Path) -> None:
    for _ in range(6_000):
        if any(place.glob(".tiltyard/runs/*/logs/offense-1.log")):
            return
        time.sleep(0.01)
    raise AssertionError("the match did not start")


def check_nothing_is_left(place: Path) -> None:
    """Check that no process works on the run, and that no temporary directory is left."""
    assert not [*place.glob(".tiltyard/runs/.*")]
    for _ in range(100):
        if not processes_using(place):
            return
        time.sleep(0.1)
    raise AssertionError(processes_using(place))


def processes_using(place: Path) -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # The process has ended.
            found.append(path.read_bytes())
    return [line for line in found if os.fsencode(place) in line]


def test_several_submissions_are_evaluated_as_if_alone(
    tmp_path: Path, quickly: tuple[str, ...]
) -> None:
    """A submission that cannot be played does not keep the others from their scores."""
    submission(tmp_path / "one", guardrail="")
    submission(tmp_path / "two", attack=BUSY, guardrail="")
    (tmp_path / "empty").mkdir()
    names = ["one", "empty", "two"]
    done = tiltyard("evaluate", *names, *quickly, "--json", cwd=tmp_path, code=2)
    *told, refused = json.loads(done.stdout)
    assert [each["submission"]["name"] for each in told] == ["one", "two"]
    assert refused["submission"] == "empty"
    assert refused["reason"]
    for name, together in zip(("one", "two"), told, strict=True):
        alone = tiltyard("evaluate", name, *quickly, "--json", "--store", name[0], cwd=tmp_path)
        assert json.loads(alone.stdout)["digest"] == together["digest"]
        assert json.loads(alone.stdout)["run_id"] == together["run_id"]
    again = tiltyard("evaluate", *names, *quickly, cwd=tmp_path, code=2)
    assert all(name in again.stdout for name in names)
    for option in (["--seeds", "1"], ["--output"]):
        wrong = tiltyard("evaluate", "one", "two", *option, cwd=tmp_path, code=2).stderr
        assert "single submission" in wrong
