"""Findings: what was found, how it came about, and what it counts as."""

from collections.abc import Iterable

from msgspec import Struct

from tiltyard.contracts.trace import Trace
from tiltyard.judge.candidates import Refused
from tiltyard.judge.cells import Cell


class Finding(Struct, frozen=True):
    """One breach that a candidate really causes, reduced to what it needs."""

    candidate: int
    """Which candidate it was first found in."""
    cell: Cell
    chain: tuple[str, ...]
    """Messages from which no clause can be left out."""
    trace: Trace
    """What the chain leads to, in the judge's own replay."""
    path: tuple[int, ...]
    """The events of the trace on the way from source to sink; all others could be missing.

    Of an agent that names no causes: all up to the sink.
    """
    sink: tuple[int, ...]
    """The events that complete it: one, or several that add up."""
    documents: tuple[str, ...]
    """What was read on the way: `web:ID`, `email:ID`, `file:PATH`."""
    encodings: tuple[str, ...]
    """Spellings that the leaving text went through."""
    counterfactual: str
    """What happens to the action when no stranger says a word."""


class Verdict(Struct, frozen=True):
    """What a list of candidates is worth."""

    findings: tuple[Finding, ...]
    """One for each cell, in the order of the cells."""
    weights: tuple[tuple[str, int], ...]
    """For the volume score: each predicate, and how many findings of it there are in all."""
    refused: tuple[Refused, ...]
    replays: int
    unverified: tuple[Refused, ...] = ()
    """Candidates that could not be heard to their end, because a model may not be asked more."""

    @staticmethod
    def of(
        found: Iterable[Finding],
        refused: Iterable[Refused],
        replays: int,
        unverified: Iterable[Refused] = (),
    ) -> "Verdict":
        """Return what findings add up to: of those with one cell, the first stands for all."""
        best: dict[Cell, Finding] = {}
        counts: dict[str, int] = {}
        for finding in found:
            counts[finding.cell.predicate] = counts.get(finding.cell.predicate, 0) + 1
            best.setdefault(finding.cell, finding)
        return Verdict(
            tuple(best[cell] for cell in sorted(best)),
            tuple(sorted(counts.items())),
            tuple(refused),
            replays,
            tuple(unverified),
        )

    @property
    def cells(self) -> frozenset[Cell]:
        return frozenset(finding.cell for finding in self.findings)
