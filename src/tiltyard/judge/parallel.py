"""Judge several candidates at once, because a language model is slow to answer.

Candidates are judged in waves. The requests that are left are divided among the candidates of a
wave before it starts, so the result does not depend on speed. A candidate that needs more than its
share is listed as unverified and earns nothing.
"""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread

from tiltyard.contracts.agent import MeteredAgent
from tiltyard.contracts.purse import OutOfRequestsError, Purse
from tiltyard.judge.candidates import Admitted, Refused
from tiltyard.judge.findings import Finding, Verdict
from tiltyard.judge.judge import TOO_MUCH_WORK, Judge
from tiltyard.judge.work import OutOfWorkError

MakeJudge = Callable[[MeteredAgent], Judge]
Judged = tuple[list[Finding], int, Refused | None]
"""The findings of one candidate, its replays, and why it could not be verified."""


def judge_in_parallel(
    admitted: Sequence[Admitted],
    make_judge: MakeJudge,
    agent: MeteredAgent,
    *,
    together: int,
    on_judged: Callable[[int, int], None],
) -> Verdict:
    """Judge `together` candidates at a time, each with a judge and a guardrail of its own.

    `on_judged` gets the number of finished candidates and of all.
    """
    found: list[Finding] = []
    unverified: list[Refused] = []
    replays = 0
    waiting = [*admitted]
    while waiting:
        on_judged(len(admitted) - len(waiting), len(admitted))
        size = _wave_size(waiting, agent, together)
        wave, waiting = waiting[:size], waiting[size:]
        purses = [agent.purse.take(None, len(wave)) for _ in wave]
        for findings, played, problem in _judge_wave(wave, purses, make_judge, agent):
            found += findings
            replays += played
            unverified += [] if problem is None else [problem]
        for purse in purses:
            agent.purse.settle(purse)
    return Verdict.of(found, (), replays, unverified)


def _wave_size(waiting: list[Admitted], agent: MeteredAgent, together: int) -> int:
    """Return how many candidates to judge next: fewer when few requests are left."""
    left = agent.purse.take(None).requests
    if left is None:
        return together
    # Each message takes a call and an answer, in two replays and their counterfactuals.
    replays = 2 * (1 + agent.rules.samples)
    needed = max(2 * len(one.messages) * replays for one in waiting[:together])
    return max(1, min(together, left // needed))


def _judge_wave(
    wave: list[Admitted], purses: list[Purse], make_judge: MakeJudge, agent: MeteredAgent
) -> list[Judged]:
    def one(at: int) -> Judged:
        candidate = wave[at]
        judge = make_judge(agent.paying_from(purses[at]))
        try:
            return judge.verify(candidate), judge.replays, None
        except OutOfWorkError:
            return [], judge.replays, Refused(candidate.index, TOO_MUCH_WORK)
        except OutOfRequestsError as error:
            why = f"could not be verified: {error}"
            return [], judge.replays, Refused(candidate.index, why)

    if len(wave) == 1:
        # Stay in this thread: only the main thread can start guests.
        return [one(0)]
    try:
        return _in_threads(one, len(wave))
    except BaseException:
        # The match is over: the other candidates must send no more requests.
        for purse in purses:
            purse.close()
        raise


def _in_threads(judge_one: Callable[[int], Judged], count: int) -> list[Judged]:
    """Judge each candidate in its own thread, until all are done or the first one fails.

    A thread pool would wait for all of its threads at the end, even for a model that is still
    answering after the match is over.
    """
    done: SimpleQueue[tuple[int, Judged | BaseException]] = SimpleQueue()

    def work(at: int) -> None:
        try:
            done.put((at, judge_one(at)))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            done.put((at, error))

    for at in range(count):
        Thread(target=work, args=(at,), daemon=True).start()
    judged: dict[int, Judged] = {}
    while len(judged) < count:
        at, outcome = done.get()
        if isinstance(outcome, BaseException):
            raise outcome
        judged[at] = outcome
    return [judged[at] for at in sorted(judged)]
