"""The two matches, played in this process.

In defense, the ruleset's Go-Explore and the deterministic agent go against a guardrail, and then
the benign suite is played past it. In offense, an attack goes against the optimal guardrail. Both
end with the judge, which replays everything in worlds of its own.
"""

import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.benign import Task, Trial, draw_suite, play
from tiltyard.contracts.agent import Agent, MeteredAgent, as_metered, as_recorded
from tiltyard.contracts.guardrail import Guardrail, MakeGuardrail
from tiltyard.episode.guardrail_runner import (
    RemoteGuardrail,
    close_guardrail,
    failure_of,
    keep_episodes_apart,
)
from tiltyard.episode.kept_state import StateError
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.log import Log
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.hearing import hear
from tiltyard.judge.judge import Judge
from tiltyard.judge.rotation import rotated
from tiltyard.judge.scoring import AttackScore, DefenseScore, score_attack, score_defense
from tiltyard.matches.attack_run import Attack, MatchError, run_attack
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import (
    Archive,
    Chain,
    Entry,
    Exploration,
    Played,
    Player,
    Vocabulary,
    Workers,
    explore,
    follow,
)
from tiltyard.search.explore import OnStatus, Players, ignore_status
from tiltyard.search.footprint import START
from tiltyard.search.moves import Move
from tiltyard.search.workers import WorkerError
from tiltyard.world.scenario import Scenario

SAMPLED_CHAINS: Final = 6
"""Of those in which something was denied, and as many of the others."""


class DefenseMatch(Struct, frozen=True):
    """How a guardrail held."""

    score: DefenseScore
    verdict: Verdict
    trials: tuple[Trial, ...]
    exploration: Exploration
    """With an empty archive when another attack took the baseline's place."""
    inconsistent: int
    """Sampled chains that a fresh guardrail decided otherwise: above 0, nothing can be compared."""
    digest: str


class OffenseMatch(Struct, frozen=True):
    """What an attack broke."""

    score: AttackScore
    verdict: Verdict
    candidates: int
    steps: int
    inconsistent: int
    """Repeated runs that returned something else: above 0, nothing can be compared."""
    digest: str


def play_defense(  # noqa: PLR0913 - a match has that many sides
    scenario: Scenario,
    make_guardrail: MakeGuardrail,
    ruleset: Ruleset,
    *,
    key: str = "",
    steps: int | None = None,
    workers: int = 1,
    report: OnStatus = ignore_status,
    log: Log[list[Played]] | None = None,
    attack: Attack | None = None,
    salt: str | None = None,
) -> DefenseMatch:
    """Play the baseline attacker, or another, and the benign suite against a guardrail.

    With the log of a match that was interrupted, the search goes on behind its last epoch. What
    is judged, compared and benign is played in an order that nobody knows, unless a `salt` is
    given to draw it from; no result depends on it.
    """
    _check_guardrail(make_guardrail)
    for name, number in (("steps", steps), ("workers", workers)):
        if number is not None and number < 1:
            raise MatchError(f"`{name}` is {number}, and must be at least 1")
    searched = make_guardrail()
    try:
        if attack is None:
            exploration = search(
                scenario,
                searched,
                ruleset,
                key=key,
                steps=steps,
                workers=workers,
                report=report,
                log=log,
            )
            candidates: list[Any] = exploration.chains
        else:
            env = _open(scenario, searched, ruleset, key, steps or ruleset.search.steps)
            candidates, spent = run_attack(attack, env, ruleset, report)
            unlearnt = Vocabulary(ruleset.search.vocabulary)
            exploration = Exploration({}, Archive(), unlearnt, spent, 0)
    finally:
        close_guardrail(searched)
    sampled = _sample(scenario, exploration, ruleset, key)
    tasks = draw_suite(scenario, key, ruleset.defense.variants)
    between = _Between(scenario, make_guardrail, ruleset, key)
    # Drawn anew each time: a guest knows its own bytes and the rules, and could work it out.
    draw = Draw("order", secrets.token_hex(16) if salt is None else salt)
    between.spread(sampled, tasks, len(candidates), draw)
    # From here on a process plays one episode, be it judged, compared or benign: none of them
    # can tell which it is but by what is said in it. It may know the time, so all are mixed.
    judged = make_guardrail()
    keep_episodes_apart(judged)
    try:
        judge = Judge(scenario, judged, ruleset=ruleset, key=key)
        verdict = judge.judge(candidates, between.play_some)
    finally:
        close_guardrail(judged)
    played, odd = between.play_rest(), between.odd
    failed = sum(trial.false_positive for trial in played)
    score = score_defense(verdict.cells, failed, len(played), ruleset)
    outcome = score, _told(verdict.findings), [trial.false_positive for trial in played]
    digest = _digest(scenario, ruleset, *outcome)
    return DefenseMatch(score, verdict, played, exploration, odd, digest)


class _Between:
    """What is compared and what is benign, played between the candidates that are judged.

    A guest may know the time, and must not know by it what it is asked for.
    """

    def __init__(
        self, scenario: Scenario, make_guardrail: MakeGuardrail, ruleset: Ruleset, key: str
    ) -> None:
        self._open = scenario, make_guardrail, ruleset, key
        self._trials: dict[int, Trial] = {}
        self._parts: list[list[tuple[int, Entry | Task]]] = []
        self.odd = 0
        """Sampled chains that were decided otherwise than in the search."""

    def spread(
        self, sampled: Sequence[Entry], tasks: Sequence[Task], candidates: int, draw: Draw
    ) -> None:
        """Draw for each of them before which candidate it is played, or behind the last."""
        self._parts = [[] for _ in range(candidates + 1)]
        turns: list[tuple[int, Entry | Task]] = [*enumerate(sampled), *enumerate(tasks)]
        for turn in draw.shuffled(turns):
            self._parts[draw.below(candidates + 1)].append(turn)

    def play_some(self) -> None:
        for at, turn in self._parts.pop():
            self._play(at, turn)

    def play_rest(self) -> tuple[Trial, ...]:
        """Play what is left, and return how all tasks went, in their own order."""
        while self._parts:
            self.play_some()
        return tuple(self._trials[at] for at in sorted(self._trials))

    def _play(self, at: int, turn: Entry | Task) -> None:
        scenario, make_guardrail, ruleset, key = self._open
        if isinstance(turn, Entry):
            decided = _decisions(scenario, make_guardrail, ruleset, key, turn.chain)
            self.odd += decided != turn.decisions
        else:
            self._trials[at] = play(turn, scenario, make_guardrail)


def _sample(
    scenario: Scenario, exploration: Exploration, ruleset: Ruleset, key: str
) -> list[Entry]:
    """Draw some of what was searched, to be played again, each past a fresh guardrail.

    What was decided during the search is known by a checksum. So a guardrail that keeps count
    somewhere of what was asked before is found out, whenever it changes its mind.
    """
    denied = [entry for entry in exploration.archive if entry.decisions]
    others = [entry for entry in exploration.archive if not entry.decisions]
    draw = Draw("sample", ruleset.id, scenario.digest, key)
    return [
        entry
        for entries in (denied, others)
        for entry in draw.sample(entries, min(SAMPLED_CHAINS, len(entries)))
    ]


def _decisions(
    scenario: Scenario, make_guardrail: MakeGuardrail, ruleset: Ruleset, key: str, chain: Chain
) -> int:
    guardrail = make_guardrail()
    try:
        env = _open(scenario, guardrail, ruleset, key)
        footprint = START
        for message in chain:
            footprint, _ = follow(footprint, message, env.interact(message).events)
    finally:
        close_guardrail(guardrail)
    return footprint.decisions


def search(  # noqa: PLR0913 - a match has that many sides
    scenario: Scenario,
    guardrail: Guardrail,
    ruleset: Ruleset,
    *,
    key: str = "",
    steps: int | None = None,
    workers: int = 1,
    report: OnStatus = ignore_status,
    log: Log[list[Played]] | None = None,
) -> Exploration:
    """Let the baseline attacker look for breaches, in a world with secrets of its own."""
    env, rules = _open(scenario, guardrail, ruleset, key), ruleset.search
    names = ruleset.id, scenario.digest, key

    def go(players: Players) -> Exploration:
        if log is not None:
            players = _Recorded(players, log)
        return explore(env, rules, names, steps=steps, players=players, report=report)

    try:
        if workers == 1:
            return go(Player(env, rules))
        with Workers(env, rules, workers) as players:
            return go(players)
    except (StateError, WorkerError) as error:
        # A worker tells its end in one line; what may be told to whom is the guest's to know.
        raise failure_of(guardrail) or MatchError(f"the search failed: {error}") from error


class _Recorded:
    """Players who write down what they played, and begin with what was written down before."""

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


def _unheard(done: int, total: int) -> None:
    """Nobody wants to know how many candidates were heard."""


def play_offense(  # noqa: PLR0913 - a match has that many sides
    scenario: Scenario,
    attack: Attack,
    ruleset: Ruleset,
    *,
    key: str = "",
    make_guardrail: MakeGuardrail = DataFlowGuardrail,
    agent: Agent | None = None,
    runs: int = 1,
    report: OnStatus = ignore_status,
    hearing: Callable[[int, int], None] = _unheard,
) -> OffenseMatch:
    """Play an attack against the optimal guardrail, or against another to see what it is worth.

    With more than one run, the first counts and the others must return the same. A language model
    as the agent has a budget of its own, of which the attack may spend a part.
    """
    works = DeterministicAgent() if agent is None else agent
    metered, recorded = as_metered(works), as_recorded(works)
    searching = works
    if metered is not None:
        ruleset = ruleset.with_model()
        bounds = metered.rules
        purse = metered.purse.take_part(bounds.attack_requests, bounds.requests)
        searching = metered.within("attack").paying_from(purse)
    if isinstance(attack, type) or not callable(getattr(attack, "run", None)):
        raise MatchError(f"an attack is an object with a `run(env, config)` method, not {attack!r}")
    _check_guardrail(make_guardrail)
    outcomes = []
    for _ in range(max(1, runs)):
        guardrail = make_guardrail()
        try:
            env = _open(scenario, guardrail, ruleset, key, ruleset.attack.steps, agent=searching)
            outcomes.append(run_attack(attack, env, ruleset, report))
        finally:
            close_guardrail(guardrail)
    (candidates, spent), *again = outcomes
    odd = sum(outcome != (candidates, spent) for outcome in again)
    rules: dict[str, Any] = {"scenario": scenario, "ruleset": ruleset, "key": key}
    if metered is not None:
        metered.purse.settle(purse)
        verdict = _hear(candidates, metered, make_guardrail, hearing, **rules)
    else:
        judged = make_guardrail()
        try:
            judge = Judge(guardrail=judged, agent=works, **rules)
            verdict = judge.judge(candidates)
        finally:
            close_guardrail(judged)
    score = score_attack(verdict.cells, dict(verdict.weights), ruleset)
    record = [] if recorded is None else [recorded.record_digest]
    digest = _digest(scenario, ruleset, score, _told(verdict.findings), *record)
    return OffenseMatch(score, verdict, len(candidates), spent, odd, digest)


def _hear(
    candidates: Sequence[Any],
    agent: MeteredAgent,
    make_guardrail: MakeGuardrail,
    report: Callable[[int, int], None],
    **judging: Any,
) -> Verdict:
    """Judge candidates with a model as the agent: several at once, unless guests take part."""
    last = make_guardrail()
    together = 1 if isinstance(last, RemoteGuardrail) else agent.rules.concurrency

    def make_judge(asked: MeteredAgent) -> Judge:
        nonlocal last
        # One that lives elsewhere is heard alone, so who came before it is not wanted any more.
        close_guardrail(last)
        last = guardrail = make_guardrail()
        return Judge(guardrail=guardrail, agent=asked, **judging)

    try:
        rules = judging["ruleset"]
        return hear(candidates, make_judge, agent, rules, together=together, report=report)
    finally:
        close_guardrail(last)


def _check_guardrail(make_guardrail: object) -> None:
    if not callable(make_guardrail):
        name = type(make_guardrail).__name__
        raise MatchError(f"a match makes its own guardrails: pass the class {name}, not an object")


def _open(  # noqa: PLR0913 - a match has that many sides
    scenario: Scenario,
    guardrail: Guardrail,
    ruleset: Ruleset,
    key: str,
    steps: int | None = None,
    *,
    agent: Agent | None = None,
) -> SandboxEnv:
    """Open an environment to search in, with secrets that are no replay's."""
    return SandboxEnv(
        agent=agent,
        guardrail=guardrail,
        scenario=scenario,
        world=rotated(scenario, "search", ruleset.id, scenario.digest, key),
        max_tool_hops=ruleset.play.calls_per_message,
        max_steps=steps,
        fold=True,
    )


def _told(findings: Sequence[Finding]) -> list[Any]:
    return [(finding.cell, finding.candidate, finding.chain) for finding in findings]


def _digest(scenario: Scenario, ruleset: Ruleset, *outcome: Any) -> str:
    """Return the SHA-256 of all that a match came to. No clock and no cache is in it."""
    content = ruleset.id, scenario.digest, outcome
    return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
