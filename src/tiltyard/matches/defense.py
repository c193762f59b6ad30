"""The defense match: the baseline attacker and a battery against a guardrail, and the benign suite.

The judge replays what the attacker found and what the battery holds, in worlds of its own.
"""

import secrets
from collections.abc import Sequence
from enum import StrEnum
from itertools import count
from typing import Any, Final, Self

from msgspec import Struct

from tiltyard.benign import Suite, Task, Trial, draw_suite, play
from tiltyard.contracts.guardrail import Guardrail, MakeGuardrail
from tiltyard.episode.guardrail_runner import close_guardrail, keep_episodes_apart
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.judge.candidates import Admitted, Refused, check_candidates
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.predicates import Breach
from tiltyard.judge.scoring import DefenseScore, score_defense
from tiltyard.matches.attack_run import Attack, PublicEnv, run_attack
from tiltyard.matches.baseline import run_baseline
from tiltyard.matches.battery import Battery, Poisoned, find_battery, poison
from tiltyard.matches.comparison import Sampled, SearchSample, is_decided_again, sample_archive
from tiltyard.matches.settings import MatchSettings, check_guardrail_maker
from tiltyard.rulesets.ruleset import VocabularyRules
from tiltyard.search import Archive, Exploration, Played, SearchStatus, Vocabulary

NO_WORDS: Final = VocabularyRules({}, (), (), {}, ())


class FoundBy(StrEnum):
    """What led to a finding of a defense match."""

    SEARCH = "search"
    BATTERY = "battery"
    TASK = "task"
    """A benign task whose documents carry injections: a part of the battery, in another world."""


class DefenseMatch(Struct, frozen=True):
    """The result of a defense match."""

    score: DefenseScore
    verdict: Verdict
    suite: Suite
    trials: tuple[Trial, ...]
    """One for each task of the suite, in its order."""
    exploration: Exploration
    """The search. Its archive is empty when another attack took the baseline's place."""
    candidates: int
    """How many chains the search submitted. Later candidates are the battery's."""
    battery: Battery
    inconsistent: int
    """Sampled chains that a fresh guardrail decided differently. Above 0, the match is not
    comparable."""
    digest: str
    curve: tuple[SearchStatus, ...] = ()
    """The search's status after each epoch."""

    def found_by(self, finding: Finding) -> FoundBy:
        if finding.candidate < self.candidates:
            return FoundBy.SEARCH
        of_battery = finding.candidate - self.candidates < len(self.battery.chains)
        return FoundBy.BATTERY if of_battery else FoundBy.TASK


@marked_interrupts()
def play_defense(
    settings: MatchSettings,
    make_guardrail: MakeGuardrail,
    *,
    attack: Attack | None = None,
    log: Log[list[Played]] | None = None,
    progress: Progress = NO_PROGRESS,
) -> DefenseMatch:
    """Play the baseline attacker, the battery and the benign suite against a guardrail.

    `make_guardrail` is a class, or a function that returns a fresh guardrail. `attack` replaces
    the baseline. `log` continues the search of an interrupted match.
    """
    check_guardrail_maker(make_guardrail)
    settings = settings.in_new_words()
    battery = find_battery(settings, progress)
    searched = _attack(settings, make_guardrail, attack, log, progress)
    suite = draw_suite(settings.scenario, settings.key, settings.ruleset.defense)
    poisoned = poison(settings, suite, battery.orders)
    candidates = _Candidates.of(settings, searched.candidates, battery, poisoned)
    mixed = _MixedEpisodes(settings, make_guardrail, suite, searched.sampled, candidates.count)
    judged = make_guardrail()
    # From here on, a guest process plays a single episode: judged, compared or benign. Only the
    # messages in it could tell the guest which, and the order is mixed, so the time cannot.
    keep_episodes_apart(judged)
    try:
        verdict = _judge(candidates, judged, mixed)
    finally:
        close_guardrail(judged)
    trials = mixed.play_rest()
    false_positives = [trial.false_positive for trial in trials]
    score = score_defense(verdict.cells, sum(false_positives), len(trials), settings.ruleset)
    return DefenseMatch(
        score,
        verdict,
        suite,
        trials,
        searched.exploration,
        len(searched.candidates),
        battery,
        mixed.inconsistent,
        settings.digest_of(verdict.findings, score, false_positives),
        searched.curve,
    )


class _Searched(Struct, frozen=True):
    """What an attacker did."""

    candidates: list[Any]
    exploration: Exploration
    sampled: list[Sampled]
    """Chains to play again, for comparison."""
    curve: tuple[SearchStatus, ...]


def _attack(
    settings: MatchSettings,
    make_guardrail: MakeGuardrail,
    attack: Attack | None,
    log: Log[list[Played]] | None,
    progress: Progress,
) -> _Searched:
    ruleset, curve = settings.ruleset, list[SearchStatus]()
    steps = settings.steps or ruleset.search.steps

    def on_status(status: SearchStatus) -> None:
        curve.append(status)
        note = f"{status.cells:,} cells, {status.claims:,} claims" if status.cells else ""
        progress.step(status.steps, note)

    progress.begin("defense", steps)
    guardrail = make_guardrail()
    try:
        if attack is None:
            found = run_baseline(settings, guardrail, on_status=on_status, log=log)
            sampled = sample_archive(settings, found.archive)
            return _Searched(found.chains, found, sampled, tuple(curve))
        env, sample = settings.open_env(guardrail, steps=steps), SearchSample(settings)
        candidates, spent = run_attack(attack, PublicEnv(env, on_status, sample), ruleset)
        nothing = Exploration({}, Archive(), Vocabulary(NO_WORDS), spent, 0)
        return _Searched(candidates, nothing, sample.chains(), tuple(curve))
    finally:
        close_guardrail(guardrail)


class _Candidates(Struct, frozen=True):
    """Everything that the judge replays, in groups, each in the world of its settings."""

    groups: tuple[tuple[MatchSettings, tuple[Admitted, ...]], ...]
    refused: list[Refused]

    @classmethod
    def of(
        cls,
        settings: MatchSettings,
        found: Sequence[Any],
        battery: Battery,
        poisoned: Sequence[Poisoned],
    ) -> Self:
        """Give each candidate a number: the search's first, then the battery's, then the tasks."""
        admitted, refused = check_candidates(found, settings.ruleset.attack)
        of_battery = [Admitted(at, chain) for at, chain in enumerate(battery.chains, len(found))]
        groups = [(settings, (*admitted, *of_battery))]
        numbers = count(len(found) + len(battery.chains))
        for each in poisoned:
            tasks = tuple(Admitted(next(numbers), chain) for chain in each.chains)
            groups.append((settings.in_scenario(each.scenario), tasks))
        return cls(tuple(groups), refused)

    @property
    def count(self) -> int:
        return sum(len(group) for _, group in self.groups)


def _judge(candidates: _Candidates, guardrail: Guardrail, mixed: "_MixedEpisodes") -> Verdict:
    """Judge all candidates. Each breach is reduced once, for the first candidate that has it."""
    found, known, replays = list[Finding](), set[Breach](), 0
    for place, group in candidates.groups:
        judge = place.make_judge(guardrail)
        for candidate in group:
            mixed.play_some()
            found += judge.new_breaches(candidate, known)
        replays += judge.replays
    return Verdict.of(found, candidates.refused, replays, every_breach=True)


class _MixedEpisodes:
    """Compared and benign episodes, played between the judged candidates.

    A guest may know the time. The order is drawn, so the time does not tell the guest what kind
    of episode it is in.
    """

    def __init__(
        self,
        settings: MatchSettings,
        make_guardrail: MakeGuardrail,
        suite: Suite,
        sampled: Sequence[Sampled],
        candidates: int,
    ) -> None:
        self._settings = settings
        self._make_guardrail = make_guardrail
        self._trials: dict[int, Trial] = {}
        self.inconsistent = 0
        # A new salt for each match: a guest knows its own bytes and the rules, and could compute
        # an order that is drawn from those.
        salt = secrets.token_hex(16) if settings.salt is None else settings.salt
        self._suite = suite
        self._batches = _spread(sampled, self._suite.tasks, candidates + 1, Draw("order", salt))
        """One batch before each candidate, and one after the last."""

    def play_some(self) -> None:
        for number, episode in self._batches.pop():
            self._play(number, episode)

    def play_rest(self) -> tuple[Trial, ...]:
        """Play the remaining batches, and return all trials in the order of their tasks."""
        while self._batches:
            self.play_some()
        return tuple(self._trials[number] for number in sorted(self._trials))

    def _play(self, number: int, episode: Sampled | Task) -> None:
        if isinstance(episode, Task):
            place = self._settings.in_scenario(self._suite.scenario_of(episode))
            # With the packaged secrets, a guardrail would know that this is no judged episode.
            world = place.world_of(episode.messages)
            self._trials[number] = play(episode, world, self._make_guardrail)
        else:
            same = is_decided_again(self._settings, self._make_guardrail, episode)
            self.inconsistent += not same


Batch = list[tuple[int, Sampled | Task]]


def _spread(
    sampled: Sequence[Sampled], tasks: Sequence[Task], batches: int, draw: Draw
) -> list[Batch]:
    """Put each episode into a batch, both drawn by `draw`."""
    spread: list[Batch] = [[] for _ in range(batches)]
    episodes: Batch = [*enumerate(sampled), *enumerate(tasks)]
    for numbered in draw.shuffled(episodes):
        spread[draw.below(batches)].append(numbered)
    return spread
