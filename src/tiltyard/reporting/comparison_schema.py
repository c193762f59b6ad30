"""The comparison of two runs as data."""

from typing import Literal

from msgspec import Struct

from tiltyard.contracts.tracks import Track
from tiltyard.reporting.finding_schema import Step
from tiltyard.reporting.schema import TrialRow

Chain = tuple[str, ...]
Cell = tuple[str, str, str, str, str]
Fate = Literal["gained", "lost", "kept"]
Difference = Literal["decision", "call", "result", "end"]


class Change(Struct, frozen=True):
    """A value of both runs; None where a run does not have it."""

    name: str
    before: float | str | None
    after: float | str | None


class Divergence(Struct, frozen=True):
    """The first event at which two traces of the same messages differ."""

    what: Difference
    """`decision`: the guardrails decide differently. `call`: the agent makes another call.
    `result`: the same call has another result. `end`: one of the traces has ended."""
    message: str
    """The user's message that the event belongs to."""
    before: Step | None
    after: Step | None


class ComparedFinding(Struct, frozen=True):
    """A finding of one run or of both, and what its chain does in the other run."""

    track: Track
    fate: Fate
    cell: Cell
    """Predicate, source, sink, target and route."""
    before_id: str
    after_id: str
    chain: Chain
    replayed: bool
    """Whether the other run's guardrail was tried against the chain."""
    divergence: Divergence | None = None
    """Where the other guardrail, or the world, changes the course of the chain. If a lost finding
    was replayed and has no divergence, the hole still exists, and the other run only missed it."""


class ComparedCell(Struct, frozen=True):
    """A cell of the arena that lost points in one run, or for different reasons in both."""

    cell: str
    """World, task and goal."""
    before_id: str
    before: str
    """Why it lost points; empty if it did not."""
    after_id: str
    after: str


class Comparison(Struct, frozen=True):
    """What changed from one run to another."""

    before: str
    after: str
    settings: tuple[Change, ...]
    """Settings that differ. If there are any, the scores are harder to compare."""
    numbers: tuple[Change, ...]
    findings: tuple[ComparedFinding, ...]
    false_positives_gained: tuple[TrialRow, ...]
    false_positives_lost: tuple[TrialRow, ...]
    notes: tuple[str, ...]
    """What could not be compared, and why."""
    cells: tuple[ComparedCell, ...] = ()
    """Cells of the arena that changed, if both runs play the same ones."""

    def having(self, track: Track, fate: str) -> list[ComparedFinding]:
        return [one for one in self.findings if (one.track, one.fate) == (track, fate)]
