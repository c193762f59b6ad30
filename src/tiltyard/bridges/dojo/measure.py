"""Play guardrails on AgentDojo's suites, and count."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.bridges.dojo.episode import Outcome, play
from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.bridges.dojo.listing import Entrant
from tiltyard.bridges.dojo.statistics import Resampled, Tally, concordance
from tiltyard.bridges.dojo.suites import BENCHMARK, HALVES, Stage, Suite
from tiltyard.contracts.policy import NO_POLICY
from tiltyard.episode.conversation import OpenConversation, open_locally
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.reporting.dojo_schema import (
    Concordance,
    Dojo,
    GuardrailFigures,
    Half,
    HalfFigures,
    Share,
    SuiteFigures,
)

_UNGUARDED: Final = open_locally(AllowAllGuardrail)


class Played(Struct, frozen=True):
    """A user task, or a live pair of a user task and an injection, with every outcome."""

    suite: str
    task: str
    injection: str | None
    effect: bool
    """Whether the user's plan changes the environment."""
    outcomes: tuple[Outcome, ...]
    """One for each guardrail."""


class Games(Struct, frozen=True):
    """Everything that was played."""

    alone: tuple[Played, ...]
    """Every user task without an injection."""
    pairs: tuple[Played, ...]
    """Every live pair."""
    hijacks: int


def measure(
    entrants: Sequence[Entrant],
    suites: Sequence[str],
    arena: dict[str, float] | None = None,
    progress: Progress = NO_PROGRESS,
) -> Dojo:
    """Play all guardrails on these suites. `arena` has defense scores by the guardrail's name."""
    progress.begin("loading AgentDojo", 1)
    games = play_suites(entrants, Suite.load(suites), progress)
    return summarize(entrants, suites, games, arena)


def play_suites(
    entrants: Sequence[Entrant], suites: Sequence[Suite], progress: Progress = NO_PROGRESS
) -> Games:
    """Play every user task alone and with every injection that works without a guardrail."""
    alone: list[Played] = []
    pairs: list[Played] = []
    hijacks = 0
    for suite in suites:
        orders = suite.hijacks
        progress.begin(suite.name, len(suite.tasks) * len(orders))
        for number, task in enumerate(suite.tasks):
            stage = Stage(suite, task, None)
            effect = _play(stage, suite, _UNGUARDED).changed
            alone.append(_play_all(stage, suite, entrants, effect=effect))
            for at, order in enumerate(orders):
                stage = Stage(suite, task, order)
                if _play(stage, suite, _UNGUARDED).breached:
                    pairs.append(_play_all(stage, suite, entrants, effect=effect))
                progress.step(number * len(orders) + at + 1, task)
        hijacks += len(suite.tasks) * len(orders)
    return Games(tuple(alone), tuple(pairs), hijacks)


def _play_all(stage: Stage, suite: Suite, entrants: Sequence[Entrant], *, effect: bool) -> Played:
    outcomes = tuple(_play(stage, suite, one.begin) for one in entrants)
    return Played(suite.name, stage.task, stage.injection, effect, outcomes)


def _play(stage: Stage, suite: Suite, begin: OpenConversation) -> Outcome:
    conversation = begin(suite.tools, NO_POLICY)
    try:
        return play(stage, conversation)
    finally:
        conversation.close()


def summarize(
    entrants: Sequence[Entrant],
    suites: Sequence[str],
    games: Games,
    arena: dict[str, float] | None = None,
) -> Dojo:
    """Turn outcomes into figures."""
    resampled = Resampled(_tallies(games.pairs))
    effect = Resampled(_tallies([one for one in games.pairs if one.effect]))
    return Dojo(
        agentdojo=version("agentdojo"),
        benchmark=BENCHMARK,
        suites=tuple(suites),
        tasks=len(games.alone),
        effect_tasks=sum(one.effect for one in games.alone),
        hijacks=games.hijacks,
        pairs=len(games.pairs),
        guardrails=tuple(
            _figures(one, at, games, (resampled.share(at), effect.share(at)))
            for at, one in enumerate(entrants)
        ),
        concordance=_compare(entrants, resampled, arena),
        halves=tuple(_halves(entrants, suites, games, arena)),
    )


def _compare(
    entrants: Sequence[Entrant], resampled: Resampled, arena: dict[str, float] | None
) -> Concordance | None:
    if arena is None:
        return None
    scores = [arena.get(one.name) for one in entrants]
    return concordance(resampled, [one.family for one in entrants], scores)


def _halves(
    entrants: Sequence[Entrant],
    suites: Sequence[str],
    games: Games,
    arena: dict[str, float] | None,
) -> Iterator[Half]:
    """Yield the figures of both halves, if suites of both were played."""
    played = {name: tuple(one for one in half if one in suites) for name, half in HALVES.items()}
    if not all(played.values()):
        return
    for name, half in played.items():
        pairs = [one for one in games.pairs if one.suite in half]
        resampled = Resampled(_tallies(pairs))
        figures = (
            HalfFigures(
                one.name, resampled.share(at), sum(pair.outcomes[at].breached for pair in pairs)
            )
            for at, one in enumerate(entrants)
        )
        compared = _compare(entrants, resampled, arena)
        yield Half(name, half, len(pairs), tuple(figures), compared)


def _tallies(pairs: Sequence[Played]) -> list[Tally]:
    tasks: dict[tuple[str, str], list[Played]] = {}
    for one in pairs:
        tasks.setdefault((one.suite, one.task), []).append(one)
    return [
        Tally(suite, task, len(played), _held(played)) for (suite, task), played in tasks.items()
    ]


def _held(played: Sequence[Played]) -> tuple[int, ...]:
    """Return for each guardrail how many of these pairs it held."""
    rows = ([outcome.held for outcome in one.outcomes] for one in played)
    return tuple(map(sum, zip(*rows, strict=True)))


def _figures(
    entrant: Entrant, at: int, games: Games, shares: tuple[Share, Share]
) -> GuardrailFigures:
    whole, effect = shares
    suites = dict.fromkeys(one.suite for one in games.pairs)
    per_suite = tuple(
        _count(name, [one.outcomes[at] for one in games.pairs if one.suite == name])
        for name in suites
    )
    alone = [one.outcomes[at] for one in games.alone]
    return GuardrailFigures(
        name=entrant.name,
        family=entrant.family,
        pairs=whole.pairs,
        solved=sum(one.solved for one in per_suite),
        untouched=sum(one.untouched for one in per_suite),
        breached=sum(one.breached for one in per_suite),
        share=whole.value,
        low=whole.low,
        high=whole.high,
        effect=effect,
        alone_tasks=len(alone),
        alone_held=sum(one.held for one in alone),
        suites=per_suite,
    )


def _count(suite: str, outcomes: Sequence[Outcome]) -> SuiteFigures:
    return SuiteFigures(
        suite,
        len(outcomes),
        sum(one.solved for one in outcomes),
        sum(one.untouched for one in outcomes),
        sum(one.breached for one in outcomes),
        sum(one.held for one in outcomes) / len(outcomes),
    )


class _Score(Struct, frozen=True):
    name: str
    score: float


class _Scores(Struct, frozen=True):
    rows: tuple[_Score, ...]


def recorded_arena() -> dict[str, float]:
    """Return the arena's recorded scores of the listed guardrails."""
    text = files(__package__).joinpath("arena.json").read_bytes()
    return {one.name: one.score for one in msgspec.json.decode(text, type=_Scores).rows}


def read_arena(path: Path) -> dict[str, float]:
    """Read the arena's scores that `tiltyard calibrate --ruleset arena` wrote."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Scores)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DojoError(
            f"{path}: {error}; expected the calibration.json of `tiltyard calibrate --ruleset "
            "arena`: an object with `rows`, a list of objects with `name` and `score`"
        ) from None
    scores = {one.name: one.score for one in found.rows}
    if len(scores) < len(found.rows):
        raise DojoError(f"{path}: a guardrail is listed twice; keep one of its scores")
    return scores
