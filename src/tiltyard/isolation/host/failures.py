"""Failures of guests: their kinds and their texts.

Everything that a guest says about itself is hostile. A `Failure` contains its texts cut to size,
and a line of the submission only if the submission has that line. A guest can choose all of it, so
an official report shows none of it: see `reporting/restriction.py`.
"""

import signal
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, structs

from tiltyard.contracts.decision import Fault
from tiltyard.episode.guardrail_caller import normalize_reason
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.isolation.wire.channel import GoneError, LateError, WireError
from tiltyard.isolation.wire.frames import Failed, FaultNote, SourceLine
from tiltyard.submissions import Submission

MAX_OUTPUT_CHARS: Final = 2_000
_MAX_PACKED_CHARS: Final = 4_000


class FailureKind(StrEnum):
    """What ended a match."""

    IMPORT = "import"
    """The submission cannot be imported."""
    CLASS = "class"
    """The module has no class of the required name."""
    CONSTRUCT = "construct"
    """The class cannot be constructed."""
    CONTRACT = "contract"
    """The object lacks a required method, or its state cannot be copied."""
    RUN = "run"
    """`AttackAlgorithm.run` raised an exception."""
    RESULT = "result"
    """`AttackAlgorithm.run` returned something that is not a list of candidates."""
    DEADLINE = "deadline"
    """The submission did not answer in time."""
    DIED = "died"
    """The submission's process ended."""
    PROTOCOL = "protocol"
    """The submission's process broke the protocol between judge and guest."""
    AGENT = "agent"
    """The agent's model or server failed."""
    MATCH = "match"
    """The match cannot be played."""
    REFUSED = "refused"
    """The check before the match found a problem."""
    WITHHELD = "withheld"
    """An official report does not say what ended the match."""


class Phase(StrEnum):
    """What the judge asked of a guest."""

    LOAD = "load"
    DECIDE = "decide"
    OBSERVE = "observe"
    RUN = "run"


_REPORTED_IN: Final[dict[Phase, frozenset[str]]] = {
    Phase.LOAD: frozenset({"import", "class", "construct", "contract"}),
    Phase.RUN: frozenset({"run", "result"}),
}
"""The failures that a guest itself can report, by phase."""


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a match was broken off."""

    kind: Annotated[FailureKind, Meta(description="What ended the match.")]
    message: Annotated[str, Meta(description="What went wrong, in one sentence.")]
    phase: Annotated[
        Phase | None,
        Meta(description="What the submission was doing; null if that is unknown or hidden."),
    ] = None
    tool: Annotated[str, Meta(description="The tool whose call the guardrail was to decide.")] = ""
    exception: Annotated[str, Meta(description="The type of the exception, if there is one.")] = ""
    file: Annotated[str, Meta(description="The file of the submission that failed.")] = ""
    line: Annotated[int, Meta(description="The line in that file; 0 if it is unknown.")] = 0
    traceback: Annotated[str, Meta(description="The traceback inside the submission.")] = ""
    output: Annotated[str, Meta(description="The end of what the submission printed.")] = ""

    @property
    def doing(self) -> str:
        """Return what the submission was doing, for example `decide shell.run`."""
        return " ".join(filter(None, (self.phase, self.tool)))


class GuestError(GuardrailGoneError):
    """A guest failed, and with it the match. `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class GuardrailFault(Struct, frozen=True, forbid_unknown_fields=True):
    """An error inside a guardrail. A fault in `decide` denies the call; the match goes on."""

    kind: Annotated[Fault, Meta(description="What the guardrail did wrong.")]
    phase: Annotated[Phase, Meta(description="Where it happened: decide or observe.")]
    message: Annotated[str, Meta(description="What went wrong, in one sentence.")]
    tool: Annotated[str, Meta(description="The tool whose call the guardrail was to decide.")] = ""
    file: Annotated[str, Meta(description="The file of the submission; empty if unknown.")] = ""
    line: Annotated[int, Meta(description="The line in that file; 0 if it is unknown.")] = 0

    @property
    def text(self) -> str:
        """Return the fault as one sentence with its place."""
        raised = f"`{self.phase}` raised " if self.kind is Fault.RAISED else ""
        place = f" ({self.file}:{self.line})" if self.line else ""
        return f"{raised}{self.message}{place}"


# The texts of all guest failures


def no_answer(seconds: float) -> str:
    return f"the submission did not answer within {seconds:.3g} seconds"


def time_is_over(seconds: float) -> str:
    return f"the submission has used up its {seconds:,.6g} seconds for the whole match"


def process_ended(code: int | None) -> str:
    """Say how a guest ended, from its exit code: see `Guest.exit_code`."""
    if code is None:
        how = "closed its connection"
    elif code < 0:
        how = f"was ended by {_signal_name(-code)}"
    else:
        how = f"exited with code {code}"
    return f"the submission's process {how} before it answered"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


NOT_READY: Final = "it did not report that the submission is loaded"
NO_DECISION: Final = "it sent something other than a decision"
NO_RESULT: Final = "it sent something other than a checked result"
NOT_NOTED: Final = "it did not confirm a message"
NO_ENV_CALL: Final = "it sent something that an attack cannot send"
OTHER_CALL: Final = "after a restart it made another call than before"


def broke_protocol(what: str) -> str:
    return f"the submission's process broke the protocol: {what}"


def wire_failure(error: WireError, deadline: str, code: int | None = None) -> Failure:
    """Return the failure behind an error of the channel.

    `deadline` is the text if the guest is late, and `code` the exit code if the guest ended.
    """
    if isinstance(error, LateError):
        return Failure(FailureKind.DEADLINE, deadline)
    if isinstance(error, GoneError):
        return Failure(FailureKind.DIED, process_ended(code))
    # The decoder's errors quote what the guest sent.
    return protocol_failure(str(error))


def protocol_failure(what: str) -> Failure:
    return Failure(FailureKind.PROTOCOL, normalize_reason(broke_protocol(what)))


def reported_failure(claim: Failed, phase: Phase, submission: Submission, module: str) -> Failure:
    """Return the failure that a guest reports, as far as the judge can check it."""
    if claim.kind not in _REPORTED_IN.get(phase, ()):
        return protocol_failure(f"it cannot fail with '{claim.kind}' in the phase '{phase}'")
    lines = own_lines(claim.lines, submission)
    last = lines[-1] if lines else None
    return Failure(
        FailureKind(claim.kind),
        normalize_reason(claim.message),
        exception=normalize_reason(claim.exception),
        file=module if last is None else last.file,
        line=0 if last is None else last.line,
        traceback="\n".join(map(normalize_reason, claim.traceback.split("\n"))),
    )


def own_lines(claims: Iterable[SourceLine], submission: Submission) -> Sequence[SourceLine]:
    """Return those lines that the submission has."""
    own = {file.path for file in submission.files}
    counts: dict[str, int] = {}
    found: list[SourceLine] = []
    for claim in claims:
        if claim.file not in own:
            continue
        if claim.file not in counts:
            counts[claim.file] = _count_lines(submission.root / claim.file)
        if claim.line <= counts[claim.file]:
            found.append(claim)
    return found


def _count_lines(path: Path) -> int:
    try:
        return len(path.read_bytes().splitlines())
    except OSError:
        return 0


def reported_fault(
    claim: FaultNote, submission: Submission, phase: Phase, tool: str = ""
) -> GuardrailFault:
    """Return the fault that a guest reports, as far as the judge can check it."""
    lines = own_lines([] if claim.at is None else [claim.at], submission)
    fault = GuardrailFault(claim.kind, phase, normalize_reason(claim.message), tool)
    if not lines:
        return fault
    return structs.replace(fault, file=lines[0].file, line=lines[0].line)


def pack(failure: Failure) -> bytes:
    """Return a failure as bytes of a bounded length, for another process."""
    texts = {
        name: value[-_MAX_PACKED_CHARS:]
        for name, value in structs.asdict(failure).items()
        if type(value) is str
    }
    return msgspec.msgpack.encode(structs.replace(failure, **texts))


def unpack(data: bytes) -> Failure:
    return msgspec.msgpack.decode(data, type=Failure)
