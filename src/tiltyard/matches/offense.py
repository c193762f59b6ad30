"""The offense match: an attack against a guardrail, the ruleset's unless you pass another.

The judge replays the attack's candidates, in worlds of its own.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from msgspec import Struct, structs

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.contracts.agent import Agent, MeteredAgent, as_metered, as_recorded, traits_of
from tiltyard.contracts.guardrail import MakeGuardrail
from tiltyard.episode.guardrail_runner import RemoteGuardrail, close_guardrail
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.foundation.interrupts import marked_interrupts
from tiltyard.foundation.progress import NO_PROGRESS, Progress
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.judge.candidates import check_candidates
from tiltyard.judge.findings import Verdict
from tiltyard.judge.judge import Judge
from tiltyard.judge.parallel import judge_in_parallel
from tiltyard.judge.scoring import AttackScore, score_attack
from tiltyard.matches.attack_run import Attack, PublicEnv, run_attack
from tiltyard.matches.settings import MatchError, MatchSettings, check_guardrail_maker
from tiltyard.matches.understanding import Listener, Understanding
from tiltyard.search import SearchStatus


class OffenseMatch(Struct, frozen=True):
    """The result of an offense match."""

    score: AttackScore
    verdict: Verdict
    candidates: int
    steps: int
    inconsistent: int
    """Repeated runs that returned other candidates. Above 0, the match is not comparable."""
    digest: str
    understanding: Understanding | None = None
    """How much of the attack's words the deterministic agent understood."""


class _Run(NamedTuple):
    candidates: list[Any]
    steps: int
    understanding: Understanding | None


@marked_interrupts()
def play_offense(
    settings: MatchSettings,
    attack: Attack,
    *,
    make_guardrail: MakeGuardrail = DataFlowGuardrail,
    agent: Agent | None = None,
    progress: Progress = NO_PROGRESS,
) -> OffenseMatch:
    """Play an attack against a guardrail.

    `agent` is the deterministic one by default. A metered agent, such as a language model, has a
    budget of requests; the attack may spend the part that the ruleset names.
    """
    if isinstance(attack, type) or not callable(getattr(attack, "run", None)):
        raise MatchError(f"an attack is an object with a `run(env, config)` method, not {attack!r}")
    check_guardrail_maker(make_guardrail)
    agent = DeterministicAgent() if agent is None else agent
    metered, recorded = as_metered(agent), as_recorded(agent)
    if metered is None:
        runs = _run_repeatedly(settings, attack, make_guardrail, agent, progress)
        verdict = _judge(settings, runs[0].candidates, make_guardrail, agent)
    else:
        settings = structs.replace(settings, ruleset=settings.ruleset.with_model())
        purse = metered.purse.take_part(metered.rules.attack_requests, metered.rules.requests)
        attacked = metered.within("attack").paying_from(purse)
        runs = _run_repeatedly(settings, attack, make_guardrail, attacked, progress)
        metered.purse.settle(purse)
        verdict = _judge_metered(settings, runs[0].candidates, make_guardrail, metered, progress)
    candidates, steps, understanding = runs[0]
    inconsistent = sum(run[:2] != runs[0][:2] for run in runs[1:])
    score = score_attack(verdict.cells, dict(verdict.weights), settings.ruleset)
    record = [] if recorded is None else [recorded.record_digest]
    digest = settings.digest_of(verdict.findings, score, *record)
    return OffenseMatch(score, verdict, len(candidates), steps, inconsistent, digest, understanding)


def _run_repeatedly(
    settings: MatchSettings,
    attack: Attack,
    make_guardrail: MakeGuardrail,
    agent: Agent,
    progress: Progress,
) -> list[_Run]:
    """Run the attack `attack_runs` times."""
    steps = settings.steps or settings.ruleset.attack.steps
    progress.begin("offense", steps * settings.attack_runs)
    runs: list[_Run] = []
    with closing(_open_envs(settings, make_guardrail, agent, steps)) as envs:
        for number, env in enumerate(envs):

            def on_status(status: SearchStatus, before: int = number * steps) -> None:
                progress.step(before + status.steps, "")

            # The other runs say the same, or the match is not comparable.
            hears = number == 0 and isinstance(agent, DeterministicAgent)
            listener = Listener() if hears else None
            public = PublicEnv(env, on_status, listener=listener)
            found = run_attack(attack, public, settings.ruleset)
            runs.append(_Run(*found, None if listener is None else listener.understanding))
    return runs


def _open_envs(
    settings: MatchSettings, make_guardrail: MakeGuardrail, agent: Agent, steps: int
) -> Generator[SandboxEnv, None, None]:
    """Open the environment of each run: the same one again, if nothing in it depends on chance."""
    guardrail = make_guardrail()
    local = not isinstance(guardrail, RemoteGuardrail)
    if settings.attack_runs > 1 and local and traits_of(agent).pure:
        env = settings.open_repeatable_env(guardrail, agent)
        for _ in range(settings.attack_runs):
            env.play_again(steps)
            yield env
        return
    for number in range(settings.attack_runs):
        guardrail = make_guardrail() if number else guardrail
        try:
            yield settings.open_env(guardrail, agent, steps)
        finally:
            close_guardrail(guardrail)


def _judge(
    settings: MatchSettings, candidates: Sequence[Any], make_guardrail: MakeGuardrail, agent: Agent
) -> Verdict:
    guardrail = make_guardrail()
    try:
        return settings.make_judge(guardrail, agent).judge(candidates)
    finally:
        close_guardrail(guardrail)


def _judge_metered(
    settings: MatchSettings,
    candidates: Sequence[Any],
    make_guardrail: MakeGuardrail,
    agent: MeteredAgent,
    progress: Progress,
) -> Verdict:
    """Judge candidates with a metered agent: several at once, unless guests take part."""
    admitted, refused = check_candidates(candidates, settings.ruleset.attack)
    last = make_guardrail()
    together = 1 if isinstance(last, RemoteGuardrail) else agent.rules.concurrency

    def make_judge(asked: MeteredAgent) -> Judge:
        nonlocal last
        # Candidates with a jailed guardrail are judged one at a time, so the last guest can go.
        close_guardrail(last)
        last = guardrail = make_guardrail()
        return settings.make_judge(guardrail, asked)

    def on_judged(done: int, total: int) -> None:
        if not done:
            progress.begin("verifying candidates", total)
        progress.step(done, "")

    try:
        verdict = judge_in_parallel(
            admitted, make_judge, agent, together=together, on_judged=on_judged
        )
        return structs.replace(verdict, refused=tuple(refused))
    finally:
        close_guardrail(last)
