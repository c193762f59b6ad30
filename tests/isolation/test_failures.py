"""Failures: the judge checks what a guest says about itself."""

import signal
from pathlib import Path

import pytest

from tiltyard.contracts.decision import Fault
from tiltyard.isolation.host import failures
from tiltyard.isolation.host.failures import Failure, FailureKind, Phase
from tiltyard.isolation.host.jailed_guardrail import SHARED_FAILURE_BYTES
from tiltyard.isolation.wire.channel import GoneError, LateError, MalformedError, WireError
from tiltyard.isolation.wire.frames import Failed, FaultNote, SourceLine
from tiltyard.submissions import Submission, open_submission

ATTACK = (
    "import helpers\n\nclass AttackAlgorithm:\n    def run(self, env, config):\n        return []\n"
)


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    source = tmp_path / "source"
    source.mkdir()
    (source / "attack.py").write_text(ATTACK, encoding="utf-8")
    (source / "helpers.py").write_text("def help():\n    pass\n", encoding="utf-8")
    return open_submission(source, tmp_path / "opened")


def failed(*lines: tuple[str, int], exception: str = "KeyError") -> Failed:
    return Failed("run", f"{exception}: 1", exception, [SourceLine(*line) for line in lines])


def report(claim: Failed, submission: Submission, phase: Phase = Phase.RUN) -> Failure:
    return failures.reported_failure(claim, phase, submission, "attack.py")


def test_a_failure_names_the_innermost_line_of_the_submission(submission: Submission) -> None:
    failure = report(failed(("attack.py", 4), ("helpers.py", 2)), submission)
    assert (failure.exception, failure.file, failure.line) == ("KeyError", "helpers.py", 2)


@pytest.mark.parametrize("line", [("attack.py", 6), ("other.py", 1), ("../attack.py", 1), ("", 1)])
def test_a_line_that_the_submission_does_not_have_is_dropped(
    submission: Submission, line: tuple[str, int]
) -> None:
    failure = report(failed(line), submission)
    assert (failure.file, failure.line) == ("attack.py", 0)


def test_a_guest_cannot_report_a_failure_of_another_phase(submission: Submission) -> None:
    for phase in (Phase.LOAD, Phase.DECIDE, Phase.OBSERVE):
        assert report(failed(), submission, phase).kind is FailureKind.PROTOCOL
    assert report(failed(), submission).kind is FailureKind.RUN


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LateError(), FailureKind.DEADLINE),
        (GoneError(), FailureKind.DIED),
        (MalformedError("sent more than one reply"), FailureKind.PROTOCOL),
    ],
)
def test_an_error_of_the_channel_has_a_kind_and_a_text(error: WireError, kind: FailureKind) -> None:
    failure = failures.wire_failure(error, failures.no_answer(20))
    assert failure.kind is kind
    assert "20 seconds" in failure.message or kind is not FailureKind.DEADLINE


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0, "exited with code 0"),
        (255, "exited with code 255"),
        (-signal.SIGKILL, "was ended by SIGKILL"),
        (-signal.SIGXCPU, "was ended by SIGXCPU"),
        (-42, "was ended by signal 42"),
        (None, "closed its connection"),
    ],
)
def test_a_dead_guest_has_an_exit_code_or_a_signal(code: int | None, told: str) -> None:
    failure = failures.wire_failure(GoneError(), "", code)
    assert failure.message == f"the submission's process {told} before it answered"


def test_the_decoders_errors_are_made_printable() -> None:
    failure = failures.protocol_failure("Invalid enum value '\ud800' " + "x" * 10_000)
    assert len(failure.message) <= 500
    assert failure.message.encode()


def test_a_packed_failure_fits_into_the_shared_page() -> None:
    text = "\N{GRINNING FACE}" * 100_000
    failure = Failure(FailureKind.RUN, text, Phase.RUN, text, text, text, 7, text, text)
    packed = failures.pack(failure)
    assert len(packed) < SHARED_FAILURE_BYTES - 4
    assert failures.unpack(packed).kind is FailureKind.RUN


def test_a_fault_names_a_line_that_the_submission_has(submission: Submission) -> None:
    claim = FaultNote(Fault.RAISED, "KeyError: 1", SourceLine("helpers.py", 2))
    fault = failures.reported_fault(claim, submission, Phase.DECIDE, "shell.run")
    assert fault.text == "`decide` raised KeyError: 1 (helpers.py:2)"
    claim = FaultNote(Fault.RAISED, "KeyError: 1", SourceLine("/etc/passwd", 2))
    fault = failures.reported_fault(claim, submission, Phase.OBSERVE)
    assert fault.text == "`observe` raised KeyError: 1"
