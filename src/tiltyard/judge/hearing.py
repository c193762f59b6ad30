"""Hearing several candidates at once, where the agent is a model that takes its time.

What may still be asked is divided among those that are heard together before they begin, so how
far each of them comes depends on nobody's speed. A candidate that cannot be heard to its end
within its share is listed, and counts for nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tiltyard.agent import OutOfRequestsError
from tiltyard.agents.model.account import Purse
from tiltyard.agents.model.agent import ModelAgent
from tiltyard.judge.candidates import Admitted, Refused, check_candidates
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.trial import Judge
from tiltyard.ruleset import Ruleset

MakeJudge = Callable[[ModelAgent], Judge]
Heard = tuple[list[Finding], int, Refused | None]


def hear(
    candidates: Sequence[Any],
    make_judge: MakeJudge,
    agent: ModelAgent,
    ruleset: Ruleset,
    *,
    together: int,
) -> Verdict:
    """Judge candidates, so many at a time; each has a judge and a guardrail of its own."""
    admitted, refused = check_candidates(candidates, ruleset.attack)
    found: list[Finding] = []
    unverified: list[Refused] = []
    replays = 0
    for wave in _waves(admitted, together):
        purses = [agent.purse.take(None, len(wave)) for _ in wave]
        for findings, played, problem in _hear(wave, purses, make_judge, agent):
            found += findings
            replays += played
            unverified += [] if problem is None else [problem]
        for purse in purses:
            agent.purse.settle(purse)
    return Verdict.of(found, refused, replays, unverified)


def _waves(admitted: list[Admitted], together: int) -> Iterator[list[Admitted]]:
    for start in range(0, len(admitted), together):
        yield admitted[start : start + together]


def _hear(
    wave: list[Admitted], purses: list[Purse], make_judge: MakeJudge, agent: ModelAgent
) -> list[Heard]:
    def one(candidate: Admitted, purse: Purse) -> Heard:
        judge = make_judge(agent.paying_from(purse))
        try:
            return judge.findings(candidate.messages, candidate.index), judge.replays, None
        except OutOfRequestsError as error:
            why = f"could not be verified: {error}"
            return [], judge.replays, Refused(candidate.index, why)

    if len(wave) == 1:
        # In this thread: a guest can be started from no other.
        return [one(wave[0], purses[0])]
    pool = ThreadPoolExecutor(len(wave))
    try:
        return list(pool.map(one, wave, purses))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
