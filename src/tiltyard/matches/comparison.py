"""Compare the decisions in the search with those of a fresh guardrail.

A guardrail that knows the search, by counting calls for example, can deny everything there. So some
chains of every search are played again, each with a guardrail that has seen nothing, and every
decision must be the same. Reasons are not compared: they decide nothing.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tiltyard.contracts.decision import Action
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.contracts.trace import Event, Trace
from tiltyard.episode.guardrail_runner import close_guardrail
from tiltyard.foundation.draw import Draw
from tiltyard.matches.settings import MatchSettings
from tiltyard.search import Archive, Entry
from tiltyard.search.footprint import decided

SAMPLED: Final = {True: 24, False: 8}
"""How many chains with a denial to replay for comparison, and how many chains without one. A
guardrail that hides denies more than it would elsewhere."""


class Turn(Struct, frozen=True, gc=False):
    """A message of an attack."""

    message: str
    max_calls: int | None = None
    """The attack's limit of calls; None is the ruleset's."""


class Sampled(Struct, frozen=True):
    """A chain of a search, and the guardrail's decisions on its calls."""

    turns: tuple[Turn, ...]
    decisions: str


class Line(Struct, frozen=True, gc=False):
    """What an attack has said in the current episode, as a list that shares its beginning."""

    before: "Line | None" = None
    turn: Turn | None = None
    decisions: str = ""

    def after(self, trace: Trace, max_calls: int | None) -> "Line":
        """Return the line with the last turn of `trace` added."""
        turn = Turn(trace.message, max_calls)
        return Line(self, turn, self.decisions + _decisions(trace.turn_events))

    def sampled(self) -> Sampled:
        turns: list[Turn] = []
        line: Line | None = self
        while line is not None and line.turn is not None:
            turns.append(line.turn)
            line = line.before
        return Sampled(tuple(reversed(turns)), self.decisions)


NOTHING_SAID: Final = Line()


class SearchSample:
    """Draws chains from an attack of unknown length: every chain is equally likely."""

    def __init__(self, settings: MatchSettings) -> None:
        self._draw = Draw("sample", *settings.names)
        self._seen = {True: 0, False: 0}
        self._kept: dict[bool, list[Line]] = {True: [], False: []}

    def see(self, line: Line) -> None:
        """Look at a chain of the attack, and keep it if the draw says so."""
        stopped = is_stopped(line.decisions)
        self._seen[stopped] += 1
        kept = self._kept[stopped]
        if len(kept) < SAMPLED[stopped]:
            kept.append(line)
            return
        place = self._draw.below(self._seen[stopped])
        if place < SAMPLED[stopped]:
            kept[place] = line

    def chains(self) -> list[Sampled]:
        return [line.sampled() for lines in self._kept.values() for line in lines]


def sample_archive(settings: MatchSettings, archive: Archive) -> list[Sampled]:
    """Draw chains from the cells of the baseline's search."""
    draw = Draw("sample", *settings.names)
    by_decision: dict[bool, list[Entry]] = {True: [], False: []}
    for entry in archive:
        by_decision[is_stopped(entry.decisions)].append(entry)
    return [
        Sampled(tuple(map(Turn, entry.chain)), entry.decisions)
        for stopped, entries in by_decision.items()
        for entry in draw.sample(entries, min(SAMPLED[stopped], len(entries)))
    ]


def is_stopped(decisions: str) -> bool:
    """Tell whether the guardrail did anything but allow."""
    return decisions.strip(Action.ALLOW[0]) != ""


def is_decided_again(
    settings: MatchSettings, make_guardrail: MakeGuardrail, chain: Sampled
) -> bool:
    """Play a chain with a fresh guardrail, and tell whether it makes the same decisions."""
    guardrail = make_guardrail()
    try:
        env = settings.open_env(guardrail)
        again = ""
        for turn in chain.turns:
            again += _decisions(env.interact(turn.message, turn.max_calls).after.turn_events)
    finally:
        close_guardrail(guardrail)
    return again == chain.decisions


def _decisions(events: Iterable[Event]) -> str:
    return "".join(
        decided(event.decision.action, (event.ran or event.call).plain_args()) for event in events
    )
