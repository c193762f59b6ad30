"""Hearing several candidates at once, where the agent is a model that takes its time.

What may still be asked is divided among those that are heard together before they begin, so how
far each of them comes depends on nobody's speed. A candidate that cannot be heard to its end
within its share is listed, and counts for nothing.
"""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from tiltyard.contracts.agent import MeteredAgent
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.judge.candidates import Admitted, Refused, check_candidates
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.judge import Judge
from tiltyard.rulesets.ruleset import Ruleset

MakeJudge = Callable[[MeteredAgent], Judge]
Heard = tuple[list[Finding], int, Refused | None]


def hear(  # noqa: PLR0913 - all that a hearing goes by
    candidates: Sequence[Any],
    make_judge: MakeJudge,
    agent: MeteredAgent,
    ruleset: Ruleset,
    *,
    together: int,
    report: Callable[[int, int], None],
) -> Verdict:
    """Judge candidates, so many at a time; each has a judge and a guardrail of its own."""
    admitted, refused = check_candidates(candidates, ruleset.attack)
    found: list[Finding] = []
    unverified: list[Refused] = []
    replays = 0
    waiting = admitted
    while waiting:
        report(len(admitted) - len(waiting), len(admitted))
        size = _how_many(waiting, agent, together)
        wave, waiting = waiting[:size], waiting[size:]
        purses = [agent.purse.take(None, len(wave)) for _ in wave]
        for findings, played, problem in _hear(wave, purses, make_judge, agent):
            found += findings
            replays += played
            unverified += [] if problem is None else [problem]
        for purse in purses:
            agent.purse.settle(purse)
    return Verdict.of(found, refused, replays, unverified)


def _how_many(waiting: list[Admitted], agent: MeteredAgent, together: int) -> int:
    """Return how many are heard next: fewer when little is left, so that it does for some."""
    left = agent.purse.take(None).requests
    if left is None:
        return together
    # A call and an answer for each message, in two replays and their counterfactuals.
    replays = 2 * (1 + agent.rules.samples)
    needed = max(2 * len(one.messages) * replays for one in waiting[:together])
    return max(1, min(together, left // needed))


def _hear(
    wave: list[Admitted], purses: list[Purse], make_judge: MakeJudge, agent: MeteredAgent
) -> list[Heard]:
    def one(at: int) -> Heard:
        candidate = wave[at]
        judge = make_judge(agent.paying_from(purses[at]))
        try:
            return judge.findings(candidate.messages, candidate.index), judge.replays, None
        except OutOfRequestsError as error:
            why = f"could not be verified: {error}"
            return [], judge.replays, Refused(candidate.index, why)

    if len(wave) == 1:
        # In this thread: a guest can be started from no other.
        return [one(0)]
    try:
        return _at_once(one, len(wave))
    except BaseException:
        # The match is over: the others ask nothing more.
        for purse in purses:
            purse.close()
        raise


def _at_once(hear_one: Callable[[int], Heard], count: int) -> list[Heard]:
    """Hear so many in threads of their own, until all are heard or the first of them fails.

    Not in a pool, whose threads are waited for at the end: a model may take its time to answer
    somebody who is gone.
    """
    done: SimpleQueue[tuple[int, Heard | BaseException]] = SimpleQueue()

    def work(at: int) -> None:
        try:
            done.put((at, hear_one(at)))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for it
            done.put((at, error))

    for at in range(count):
        Thread(target=work, args=(at,), daemon=True).start()
    heard: dict[int, Heard] = {}
    while len(heard) < count:
        at, outcome = done.get()
        if isinstance(outcome, BaseException):
            raise outcome
        heard[at] = outcome
    return [heard[at] for at in sorted(heard)]
