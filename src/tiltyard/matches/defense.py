"""The defense match: the baseline attacker against a guardrail, then the benign suite.

The judge replays what the attacker found, in worlds of its own.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from tiltyard.benign import Task, Trial, draw_suite, play
from tiltyard.contracts.guardrail import Guardrail, MakeGuardrail
from tiltyard.episode.guardrail_runner import close_guardrail, failure_of, keep_episodes_apart
from tiltyard.episode.kept_state import StateError
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.log import Log
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.judge.findings import Verdict
from tiltyard.judge.scoring import DefenseScore, score_defense
from tiltyard.matches.attack_run import Attack, run_attack
from tiltyard.matches.settings import MatchError, MatchSettings, check_guardrail_maker
from tiltyard.search import (
    Archive,
    Chain,
    Entry,
    Exploration,
    Played,
    Player,
    SearchStatus,
    Vocabulary,
    Workers,
    explore,
    follow,
)
from tiltyard.search.footprint import START
from tiltyard.search.moves import Move
from tiltyard.search.player import Players
from tiltyard.search.status import OnStatus, ignore_status
from tiltyard.search.workers import WorkerError

SAMPLED_CHAINS: Final = 6
"""How many chains with a denial to replay for comparison, and how many chains without one."""


class DefenseMatch(Struct, frozen=True):
    """The result of a defense match."""

    score: DefenseScore
    verdict: Verdict
    trials: tuple[Trial, ...]
    exploration: Exploration
    """The search. Its archive is empty when another attack took the baseline's place."""
    inconsistent: int
    """Sampled chains that a fresh guardrail decided differently. Above 0, the match is not
    comparable."""
    digest: str
    curve: tuple[SearchStatus, ...] = ()
    """The search's status after each epoch."""


def play_defense(
    settings: MatchSettings,
    make_guardrail: MakeGuardrail,
    *,
    attack: Attack | None = None,
    log: Log[list[Played]] | None = None,
    progress: Progress = NO_PROGRESS,
) -> DefenseMatch:
    """Play the baseline attacker and the benign suite against a guardrail.

    `make_guardrail` is a class, or a function that returns a fresh guardrail. `attack` replaces
    the baseline. `log` continues the search of an interrupted match.
    """
    check_guardrail_maker(make_guardrail)
    candidates, exploration, curve = _attack(settings, make_guardrail, attack, log, progress)
    mixed = _MixedEpisodes(settings, make_guardrail, exploration, len(candidates))
    judged = make_guardrail()
    # From here on, a guest process plays a single episode: judged, compared or benign. Only the
    # messages in it could tell the guest which, and the order is mixed, so the time cannot.
    keep_episodes_apart(judged)
    try:
        verdict = settings.make_judge(judged).judge(candidates, mixed.play_some)
    finally:
        close_guardrail(judged)
    trials = mixed.play_rest()
    false_positives = [trial.false_positive for trial in trials]
    score = score_defense(verdict.cells, sum(false_positives), len(trials), settings.ruleset)
    digest = settings.digest_of(verdict.findings, score, false_positives)
    return DefenseMatch(score, verdict, trials, exploration, mixed.inconsistent, digest, curve)


def _attack(
    settings: MatchSettings,
    make_guardrail: MakeGuardrail,
    attack: Attack | None,
    log: Log[list[Played]] | None,
    progress: Progress,
) -> tuple[list[Any], Exploration, tuple[SearchStatus, ...]]:
    """Run the attacker. Return its candidates, its search and the search's statuses."""
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
            return found.chains, found, tuple(curve)
        env = settings.open_env(guardrail, steps=steps)
        candidates, spent = run_attack(attack, env, ruleset, on_status)
        nothing = Exploration({}, Archive(), Vocabulary(ruleset.search.vocabulary), spent, 0)
        return candidates, nothing, tuple(curve)
    finally:
        close_guardrail(guardrail)


def run_baseline(
    settings: MatchSettings,
    guardrail: Guardrail,
    *,
    on_status: OnStatus = ignore_status,
    log: Log[list[Played]] | None = None,
) -> Exploration:
    """Search for breaches of a guardrail. With a `log`, continue after its last epoch."""
    env, ruleset = settings.open_env(guardrail), settings.ruleset
    rules, names = ruleset.search, (ruleset.id, settings.scenario.digest, settings.key)

    def search_with(players: Players) -> Exploration:
        if log is not None:
            players = _LoggedPlayers(players, log)
        return explore(
            env, rules, names, steps=settings.steps, players=players, on_status=on_status
        )

    try:
        if settings.workers == 1:
            return search_with(Player(env, rules))
        with Workers(env, rules, settings.workers) as players:
            return search_with(players)
    except (StateError, WorkerError) as error:
        # A worker process reports only one line. A guest's own error says more, and says which
        # part of it a competitor may see.
        raise failure_of(guardrail) or MatchError(f"the search failed: {error}") from error


class _LoggedPlayers:
    """Return the epochs in the log first, then play and log the rest."""

    def __init__(self, players: Players, log: Log[list[Played]]) -> None:
        self._players = players
        self._log = log

    def play(self, moves: Sequence[Move]) -> list[Played]:
        played = self._log.replay()
        if played is None:
            played = list(self._players.play(moves))
            self._log.add(played)
            self._log.flush()
        return played


class _MixedEpisodes:
    """Compared and benign episodes, played between the judged candidates.

    A guest may know the time. The order is drawn, so the time does not tell the guest what kind
    of episode it is in.
    """

    def __init__(
        self,
        settings: MatchSettings,
        make_guardrail: MakeGuardrail,
        exploration: Exploration,
        candidates: int,
    ) -> None:
        self._settings = settings
        self._make_guardrail = make_guardrail
        self._trials: dict[int, Trial] = {}
        self.inconsistent = 0
        # A new salt for each match: a guest knows its own bytes and the rules, and could compute
        # an order that is drawn from those.
        salt = secrets.token_hex(16) if settings.salt is None else settings.salt
        sampled = _sample(settings, exploration)
        tasks = draw_suite(settings.scenario, settings.key, settings.ruleset.defense.variants)
        self._batches = _spread(sampled, tasks, candidates + 1, Draw("order", salt))
        """One batch before each candidate, and one after the last."""

    def play_some(self) -> None:
        for number, episode in self._batches.pop():
            self._play(number, episode)

    def play_rest(self) -> tuple[Trial, ...]:
        """Play the remaining batches, and return all trials in the order of their tasks."""
        while self._batches:
            self.play_some()
        return tuple(self._trials[number] for number in sorted(self._trials))

    def _play(self, number: int, episode: Entry | Task) -> None:
        if isinstance(episode, Task):
            self._trials[number] = play(episode, self._settings.scenario, self._make_guardrail)
        else:
            decisions = _replay_decisions(self._settings, self._make_guardrail, episode.chain)
            self.inconsistent += decisions != episode.decisions


Batch = list[tuple[int, Entry | Task]]


def _spread(
    sampled: Sequence[Entry], tasks: Sequence[Task], batches: int, draw: Draw
) -> list[Batch]:
    """Put each episode into a batch, both drawn by `draw`."""
    spread: list[Batch] = [[] for _ in range(batches)]
    episodes: Batch = [*enumerate(sampled), *enumerate(tasks)]
    for numbered in draw.shuffled(episodes):
        spread[draw.below(batches)].append(numbered)
    return spread


def _sample(settings: MatchSettings, exploration: Exploration) -> list[Entry]:
    """Draw searched chains to replay, each with a fresh guardrail.

    The archive keeps a checksum of the decisions in the search. A guardrail that counts past
    requests, and changes its mind, has another checksum in the replay.
    """
    denied = [entry for entry in exploration.archive if entry.decisions]
    others = [entry for entry in exploration.archive if not entry.decisions]
    draw = Draw("sample", settings.ruleset.id, settings.scenario.digest, settings.key)
    return [
        entry
        for entries in (denied, others)
        for entry in draw.sample(entries, min(SAMPLED_CHAINS, len(entries)))
    ]


def _replay_decisions(settings: MatchSettings, make_guardrail: MakeGuardrail, chain: Chain) -> int:
    """Play a chain with a fresh guardrail, and return the checksum of its decisions."""
    guardrail = make_guardrail()
    try:
        env = settings.open_env(guardrail)
        footprint = START
        for message in chain:
            footprint, _ = follow(footprint, message, env.interact(message).events)
    finally:
        close_guardrail(guardrail)
    return footprint.decisions
