"""`tiltyard replay`: steps through a finding or a failed trial, and escapes hostile text."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import Result

from tiltyard.contracts.trace import Trace
from tiltyard.reporting.finding_schema import Finding, Segment, Step
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import Report, TrialRow
from tiltyard.runs.store import REPORT, load_report, save

Command = Callable[..., Result]
Refusal = Callable[..., str]
PATIENCE_SECONDS = 60


def _findings(run: Path) -> tuple[Finding, ...]:
    report = load_report(run / REPORT)
    assert report.defense is not None
    return report.defense.found


def test_every_event_of_a_trace_is_printed(tiltyard: Command, played: Path, open_run: Path) -> None:
    for finding in _findings(open_run):
        done = tiltyard("replay", f"{open_run.name[:8]}:{finding.id}", "--store", played)
        assert done.exit_code == 0, done.output
        trace = Trace.from_json((open_run / "traces" / f"{finding.id}.json").read_bytes())
        assert [line for line in done.stdout.splitlines() if line.startswith("call ")] == [
            line
            for event in trace.events
            for line in done.stdout.splitlines()
            if line.startswith(f"call {event.index}  {event.call.tool}")
        ]
        assert done.stdout.count("\n  decision ") == trace.event_count
        for message in trace.user_messages:
            assert message.split("\n")[0] in done.stdout
        assert done.stdout.count("SINK: this call completes the finding") >= 1


def test_a_run_can_be_named_in_three_ways(
    tiltyard: Command, refusal: Refusal, played: Path, open_run: Path, closed_run: Path
) -> None:
    told = tiltyard("replay", f"{open_run}:D1").stdout
    assert told == tiltyard("replay", "d1", "--run", open_run / REPORT).stdout
    assert "both name a run" in refusal("replay", f"{open_run}:D1", "--run", open_run)
    # Without a run, the newest.
    assert f"run {closed_run.name}" in tiltyard("replay", "A1", "--store", played).stdout
    assert "no finished runs" in refusal("replay", "A1")


def test_unknown_findings_are_refused(
    refusal: Refusal, open_run: Path, closed_run: Path, tmp_path: Path
) -> None:
    last = _findings(open_run)[-1].id
    assert "has no finding 'D99'; it has A1 to A" in refusal("replay", f"{open_run}:D99")
    assert f"D1 to {last}" in refusal("replay", f"{open_run}:D99")
    assert "it has A1" in refusal("replay", f"{closed_run}:A2")
    report = load_report(closed_run / REPORT)
    save(tmp_path / "hidden", {}, restricted(report))
    assert "only its organizer may see" in refusal("replay", f"{tmp_path / 'hidden'}:A1")
    save(tmp_path / "none", {}, structs.replace(report, offense=None, defense=None))
    assert "has no findings to replay" in refusal("replay", f"{tmp_path / 'none'}:A1")


def _trials(run: Path) -> tuple[TrialRow, ...]:
    report = load_report(run / REPORT)
    assert report.defense is not None
    return report.defense.trials


def test_a_failed_benign_trial_is_replayed_with_the_offending_argument(
    tiltyard: Command, closed_run: Path
) -> None:
    trials = _trials(closed_run)
    assert [trial.id for trial in trials] == [f"B{at}" for at in range(1, len(trials) + 1)]
    failed = [trial for trial in trials if trial.false_positive]
    assert failed
    for trial in failed:
        done = tiltyard("replay", f"{closed_run}:{trial.id.lower()}")
        assert done.exit_code == 0, done.output
        assert f"FALSE POSITIVE ({trial.operation}, variant {trial.variant}" in done.stdout
        assert trial.reason in done.stdout
        stopped = [line for line in done.stdout.splitlines() if "STOPPED" in line]
        assert [line.split()[2] for line in stopped] == [trial.tool]
        for message in trial.messages:
            assert message.split("\n")[0] in done.stdout
        (step,) = [step for step in trial.steps if step.stopped]
        marked = done.stdout.count("<= the guardrail objects to this")
        assert marked == len(step.offending)


def test_a_trial_that_passed_has_no_replay(refusal: Refusal, open_run: Path) -> None:
    assert not any(trial.false_positive for trial in _trials(open_run))
    assert "trial B1 passed" in refusal("replay", f"{open_run}:B1")


HOSTILE = "\x1b]0;owned\x07 [bold]loud[/bold] \u202eback \x9b31m \u2028 \N{LEFT-TO-RIGHT ISOLATE}"
FORGED = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}SECRET: no"


@pytest.fixture
def hostile(open_run: Path, tmp_path: Path) -> Path:
    """Write a report in which every word is hostile."""
    report = load_report(open_run / REPORT)
    assert report.defense is not None
    bad = Segment(HOSTILE + FORGED, "web", untrusted=True, document=HOSTILE)
    secret = Segment("the code", "file", secret=True, encoding="base64")
    step = Step(
        index=0,
        turn=0,
        tool=HOSTILE,
        args={HOSTILE: (bad, secret)},
        decision="deny",
        reason=HOSTILE,
        ok=True,
        error=HOSTILE,
        output=(Segment("two\nlines", "user"), bad),
        because=(0,),
        effects=(HOSTILE,),
        stopped=True,
        offending=(HOSTILE,),
    )
    trial = TrialRow(
        HOSTILE,
        1,
        (HOSTILE,),
        false_positive=True,
        succeeded=False,
        missing=HOSTILE,
        tool=HOSTILE,
        args={HOSTILE: HOSTILE},
        reason=HOSTILE,
        id="B1",
        answers=(HOSTILE,),
        steps=(step,),
    )
    finding = structs.replace(
        report.defense.found[0],
        predicate=HOSTILE,
        chain=(HOSTILE,),
        answers=(HOSTILE,),
        steps=(step,),
    )
    told: Report = structs.replace(
        report,
        defense=structs.replace(report.defense, found=(finding,), trials=(trial,)),
        submission=structs.replace(report.submission, name=HOSTILE),
    )
    save(tmp_path / "hostile" / "runs" / "1", {}, told)
    return tmp_path / "hostile"


def test_hostile_text_is_escaped(tiltyard: Command, hostile: Path, open_run: Path) -> None:
    for command in (
        ["replay", "1:D1", "--store", hostile],
        ["replay", "1:B1", "--store", hostile],
        ["history", "--store", hostile],
        ["compare", "1", open_run, "--store", hostile],
    ):
        done = tiltyard(*command)
        assert done.exit_code == 0, done.output
        told = done.output
        assert not [char for char in told if not char.isprintable() and char != "\n"]
        assert "\\x1b]0;owned\\x07 [bold]loud[/bold] \\u202eback \\x9b31m \\u2028" in told


def test_secrets_and_strangers_text_are_marked_and_marks_cannot_be_forged(
    tiltyard: Command, hostile: Path
) -> None:
    told = tiltyard("replay", "1:D1", "--store", hostile).stdout
    head, body = told.split("message 1 of 1")
    assert "⟦SECRET base64: the code⟧" in body
    assert body.count("⟦web: \\x1b") == 2
    assert body.count("⟦SECRET") == 1
    assert "\\u27e6SECRET: no⟧" in body
    # Lines of a text stay lines, with the same indent.
    first, second = (
        next(line for line in body.splitlines() if word in line) for word in ("two", "lines")
    )
    assert first.index("two") == second.index("lines")
    assert "⟦web: ...⟧ is text from a stranger" in head


class Terminal:
    """A command in its own terminal, driven by keys."""

    def __init__(self, *args: object) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [Path(sys.executable).with_name("tiltyard"), *map(str, args)],
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
        )
        os.close(theirs)

    def until(self, word: str) -> str:
        """Read the output up to a word."""
        shown = ""
        while word not in shown:
            ready, _, _ = select.select([self._ours], [], [], PATIENCE_SECONDS)
            assert ready, f"{word!r} does not come: {shown}"
            shown += os.read(self._ours, 65536).decode()
        return shown

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def end(self) -> int:
        """Read the rest, so that the program can end, and return its exit code."""
        with suppress(OSError):  # The terminal closes with its last program.
            while os.read(self._ours, 65536):
                pass
        _, error = self._process.communicate(timeout=PATIENCE_SECONDS)
        os.close(self._ours)
        assert not error
        return self._process.returncode


def test_keys_step_through_a_finding(hostile: Path) -> None:
    terminal = Terminal("replay", "1:D1", "--store", hostile)
    shown = terminal.until("1 of 3 ")
    assert "message 1 of 1" in shown
    terminal.press("n")
    shown = terminal.until("2 of 3 ")
    assert "call 0" in shown
    assert "message 1 of 1" not in shown
    # The output has colours, but no escape sequence of the hostile text.
    assert "\x1b[" in shown
    assert "\x1b]0;owned" not in shown
    assert "\u202e" not in shown
    terminal.press("p")
    assert "message 1 of 1" in terminal.until("1 of 3 ")
    # Keys that come at once are read one by one, including arrows.
    terminal.press("\r\x1b[C")
    assert "answer" in terminal.until("3 of 3 ")
    terminal.press("\r")
    assert terminal.end() == 0


def test_q_quits_and_all_prints_everything(hostile: Path) -> None:
    terminal = Terminal("replay", "1:D1", "--store", hostile)
    terminal.until("1 of 3 ")
    terminal.press("q")
    assert terminal.end() == 0
    terminal = Terminal("replay", "1:D1", "--store", hostile, "--all")
    assert "call 0" in terminal.until("answer")
    assert terminal.end() == 0
