"""Whether a match notices a mutant."""

import ast
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import Final

from msgspec import Struct

from mutation.changes import Change, defined, names_in
from mutation.episodes import (
    BENIGN,
    Difference,
    Episode,
    Line,
    Outcome,
    first_difference,
    lines_reached,
    plain,
    text_of,
)
from mutation.sources import Source, load, load_changed
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.foundation.interrupts import Interrupted

PATIENCE_S: Final = 3.0
"""Seconds of processor time for one episode. An episode of the reference takes milliseconds."""


class Verdict(StrEnum):
    NOTICED = "noticed"
    EQUAL = "equal"
    """All decisions are the reference's, in every episode."""
    UNNOTICED = "unnoticed"
    """Some decisions differ, and the score does not."""


class Judged(Struct, frozen=True):
    """A mutant and its verdict."""

    file: str
    line: int
    change: str
    verdict: Verdict
    episodes: int
    """How many episodes execute the changed line."""
    differing: int
    """How many of the played ones have another decision."""
    looser: int
    """How many of these begin with a call that the mutant allows and the reference denies."""
    example: str
    """What the match notices, or the first call that the mutant decides differently."""


class HungError(Interrupted):
    """A mutant does not come to an end."""


class Bench:
    """The episodes of a match, and the lines of the reference that each of them executes."""

    def __init__(self, sources: tuple[Source, ...], episodes: list[Episode]) -> None:
        self.sources = sources
        self.episodes = episodes
        paths = frozenset(source.path for source in sources)
        # A new class for each episode: a cached function would hide its lines from the next one.
        self._reached = [lines_reached(each, load(sources).guardrail, paths) for each in episodes]
        self._loaded = load(sources)
        self._users = _users(sources)
        self._texts = [text_of(each) for each in episodes]
        # Benign tasks are short, so they come first.
        self._order = sorted(
            range(len(episodes)), key=lambda number: (episodes[number].part != BENIGN, number)
        )
        """Numbers of the episodes. Those that noticed a mutant lately come first."""

    def judge(self, change: Change) -> Judged:
        """Play the episodes that can notice a change, until one of them does."""
        reached = self.reaching(change)
        found: list[Difference] = []

        def judged(verdict: Verdict, example: str) -> Judged:
            file = change.source.path.rpartition("/guardrails/")[2]
            looser = sum(each.is_looser for each in found)
            counts = len(reached), len(found), looser
            return Judged(file, change.line, change.what, verdict, *counts, example)

        try:
            make = load_changed(self.sources, change.changed(), self._loaded).guardrail
        except Exception as error:  # noqa: BLE001 - a mutant may fail in any way
            return judged(Verdict.NOTICED, f"cannot be loaded: {error!r}")
        for number in [number for number in self._order if number in reached]:
            episode = self.episodes[number]
            try:
                outcome = self._outcome(episode, make, found)
            except HungError:
                outcome = None
            if outcome != episode.outcome:
                self._remember(number)
                return judged(Verdict.NOTICED, _shown(episode, outcome))
        if not found:
            return judged(Verdict.EQUAL, "")
        return judged(Verdict.UNNOTICED, f"{found[0].step.tool} {found[0].step.args}")

    @staticmethod
    def _outcome(episode: Episode, make: MakeGuardrail, found: list[Difference]) -> Outcome:
        """Play an episode as far as needed, and add the first other decision to `found`."""
        with _patience():
            difference = first_difference(episode, make)
            if difference is None:
                return episode.outcome
            found.append(difference)
            return episode.play(make)

    def reaching(self, change: Change) -> set[int]:
        """Return the episodes that a change can alter.

        They execute a changed line, or a function that uses a changed constant. A word that is
        dropped from a list occurs in them.
        """
        lines = self._users.get(change.definition)
        if lines is None:
            lines = {(change.source.path, line) for line in change.lines}
        return {
            number
            for number, reached in enumerate(self._reached)
            if not reached.isdisjoint(lines) and plain(change.word) in self._texts[number]
        }

    def _remember(self, number: int) -> None:
        """Play this episode first from now on: it is likely to notice the next mutant too."""
        self._order.remove(number)
        self._order.insert(0, number)


def _shown(episode: Episode, outcome: Outcome | None) -> str:
    what = "does not end" if outcome is None else ", ".join(sorted(map(str, outcome)))
    return f"{what}: {episode.messages}"


def _users(sources: tuple[Source, ...]) -> dict[str, set[Line]]:
    """Return, for each constant, the lines of all functions that use it or what is made of it."""
    constants: dict[str, frozenset[str]] = {}
    functions: list[tuple[frozenset[str], set[Line]]] = []
    for source in sources:
        for statement in source.tree.body:
            if isinstance(statement, ast.AnnAssign):
                constants |= dict.fromkeys(defined(statement), names_in(statement))
        functions += (
            (names_in(node), {(source.path, line) for line in _lines_inside(node)})
            for node in ast.walk(source.tree)
            if isinstance(node, ast.FunctionDef)
        )
    return {
        name: {
            line
            for names, lines in functions
            if not names.isdisjoint(_made_of(name, constants))
            for line in lines
        }
        for name in constants
    }


def _made_of(name: str, constants: dict[str, frozenset[str]]) -> set[str]:
    """Return a constant and the constants that depend on it."""
    found: set[str] = set()
    fresh = {name}
    while fresh:
        found |= fresh
        fresh = {other for other, names in constants.items() if names & fresh} - found
    return found


def _lines_inside(function: ast.FunctionDef) -> range:
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


@contextmanager
def _patience() -> Iterator[None]:
    """Raise `HungError` if the block takes more than `PATIENCE_S` of processor time."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise HungError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
