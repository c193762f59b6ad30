"""A guest cannot tell in which phase of a match it plays."""

import os
from collections.abc import Callable
from typing import Any, Final

import pytest

from isolation.test_guests import KEEPS_STATE, Submit, in_process, submit
from small_runs import small_rules
from tiltyard import SandboxEnv
from tiltyard.benign import draw_tasks, play
from tiltyard.episode.guardrail_runner import keep_episodes_apart
from tiltyard.isolation.host import cores, slots
from tiltyard.isolation.host.failures import FailureKind, GuestError, Phase
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.session import Session
from tiltyard.judge import Judge
from tiltyard.matches import defense
from tiltyard.matches.defense import play_defense
from tiltyard.matches.settings import MatchSettings
from tiltyard.world.generate import generate

__all__ = ["submit"]

SHORT: Final = small_rules(1_500)
CHAINS: Final = (("read file readme", "list mail"), ("run echo",))

TELLS_ALL: Final = """
import gc, os, sys, threading
from tiltyard import Decision

class Guardrail:
    def decide(self, tool_name, tool_args, context):
        numbers = os.getpid(), os.getppid(), os.getpgid(0), threading.get_native_id()
        here = id(self), id(sys.modules), len(gc.get_objects()), os.urandom(8).hex()
        servers = [o for o in gc.get_objects() if type(o).__name__ == "GuardrailServer"]
        handles = [list(server._states) for server in servers]
        return Decision.deny(f"{numbers} {here} {handles}")
"""

TELLS_THE_JUDGE: Final = """
from tiltyard import Decision

beginnings = 0

class Guardrail:
    \"\"\"Lets everything pass in its first three episodes, and nothing in the others.\"\"\"

    def decide(self, tool_name, tool_args, context):
        global beginnings
        beginnings += not context.events
        return Decision.deny("") if beginnings > 3 else Decision.allow()
"""


def reasons(guardrail: Any) -> list[str]:
    """Return the first reason that a guardrail gives in each of some episodes."""
    env = SandboxEnv(guardrail=guardrail)
    said = []
    for message, *_ in CHAINS * 2:
        env.reset()
        said += [event.reason for event in env.interact("run echo; " + message).events[:1]]
    return said


def test_guest_cannot_count_earlier_guests(submit: Submit) -> None:
    with GuestPool(submit(guardrail=TELLS_ALL), "guardrail") as pool:
        guardrail = pool.guardrail()
        keep_episodes_apart(guardrail)
        said = reasons(guardrail)
        guardrail.close()
    assert said[0]
    assert len(set(said)) == 1, said


def test_guest_that_plays_many_episodes_can_count_them(submit: Submit) -> None:
    """The control for the test above: its guardrail does see a difference."""
    with GuestPool(submit(guardrail=TELLS_ALL), "guardrail") as pool:
        guardrail = pool.guardrail()
        env = SandboxEnv(guardrail=guardrail)
        said = {env.interact(f"run echo {n}").events[0].reason for n in range(3)}
        guardrail.close()
    assert len(said) > 1


def test_each_judged_replay_has_a_fresh_guest(submit: Submit) -> None:
    plain = play_defense(MatchSettings(generate(123), SHORT), in_process(KEEPS_STATE))
    chains = plain.exploration.chains
    assert len(chains) > 3
    with GuestPool(submit(guardrail=TELLS_THE_JUDGE), "guardrail") as pool:
        guardrail = pool.guardrail()
        keep_episodes_apart(guardrail)
        apart = Judge(generate(123), guardrail).judge(chains)
        guardrail.close()
        together = Judge(generate(123), pool.guardrail()).judge(chains)
    allowed = Judge(generate(123)).judge(chains)
    assert [finding.cell for finding in apart.findings] == [f.cell for f in allowed.findings]
    assert len(together.findings) < len(allowed.findings)


def test_all_phases_send_the_same_kinds_of_notes(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames of all phases differ only in messages, calls and results."""
    asked: list[tuple[Session, Any]] = []
    ask = Session.ask

    def listen(session: Session, frame: Any, phase: Phase, tool: str = "") -> Any:
        asked.append((session, frame))
        return ask(session, frame, phase, tool)

    monkeypatch.setattr(Session, "ask", listen)
    scenario = generate(123)
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        guardrail = pool.guardrail()
        keep_episodes_apart(guardrail)
        Judge(scenario, guardrail).judge(CHAINS * 2)
        guardrail.close()
        for task in draw_tasks(scenario, "", 1)[:3]:
            play(task, scenario, pool.guardrail)
        lone = pool.guardrail()
        env = SandboxEnv(guardrail=lone)
        for message in CHAINS[0]:
            env.interact(message)
        lone.close()
    lives: dict[int, list[Any]] = {}
    for session, frame in asked:
        lives.setdefault(id(session), []).extend(frame.notes)
    for notes in lives.values():
        kinds = [type(note).__name__ for note in notes]
        assert set(kinds) <= {"Enter", "Begin", "Seen", "Close", "Commit"}
        entered = [note.handle for note in notes if type(note).__name__ == "Enter"]
        assert entered == list(range(len(entered)))
    assert len(lives) >= len(CHAINS) + 3 + 1


def test_phases_are_mixed_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in the match does not tell a guest the phase."""
    kinds: list[str] = []

    def noting(kind: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **named: Any) -> Any:
            kinds.append(kind)
            return do(*given, **named)

        return noted

    monkeypatch.setattr(Judge, "findings", noting("judged", Judge.findings))
    monkeypatch.setattr(defense, "play", noting("benign", play))
    compare = noting("compared", vars(defense)["is_decided_again"])
    monkeypatch.setattr(defense, "is_decided_again", compare)
    made = in_process(KEEPS_STATE)
    one = play_defense(MatchSettings(generate(123), SHORT), made)
    first, kinds = kinds, []
    for kind in ("judged", "compared", "benign"):
        assert first.count(kind) > 3
        meanwhile = first[first.index(kind) : len(first) - first[::-1].index(kind)]
        assert {*meanwhile} == {"judged", "compared", "benign"}
    # The order is random, so nobody can predict it, and the result does not depend on it.
    other = play_defense(MatchSettings(generate(123), SHORT), made)
    assert sorted(kinds) == sorted(first)
    assert kinds != first
    assert other.digest == one.digest


DIES: Final = """
import os
from tiltyard import Decision

class Guardrail:
    def decide(self, tool_name, tool_args, context):
        print("my last words", context.last_user)
        os._exit(1)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_failure_is_the_same_for_any_number_of_workers(submit: Submit, workers: int) -> None:
    with (
        GuestPool(submit(guardrail=DIES), "guardrail") as pool,
        pytest.raises(GuestError) as caught,
    ):
        play_defense(MatchSettings(generate(123), SHORT, workers=workers), pool.guardrail)
    failure = caught.value.failure
    assert failure.kind is FailureKind.DIED
    assert "my last words" in failure.output
    assert failure.file == "guardrail.py"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core")
def test_forked_copies_do_not_share_a_core(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search worker is forked from a judge that may be bound to one core."""
    # A name of its own: as if no other process were on this machine.
    name = f"core-for-{os.getpid()}"
    monkeypatch.setattr(cores, "take", lambda _, numbers: slots.take(name, numbers))
    with GuestPool(submit(guardrail=KEEPS_STATE), "guardrail") as pool:
        pool.open()
        (own,) = os.sched_getaffinity(0)
        (others,) = in_a_copy(lambda: _open_and_look(pool))
    assert others != {own}
    assert len(os.sched_getaffinity(0)) >= 2


def _open_and_look(pool: GuestPool) -> set[int]:
    session = pool.open()
    own = os.sched_getaffinity(0)
    assert os.sched_getaffinity(session.guest.pid) == own
    pool.close()
    return own


def in_a_copy(do: Callable[[], set[int]]) -> list[set[int]]:
    read, write = os.pipe()
    copy = os.fork()
    if copy == 0:
        os.write(write, ",".join(map(str, do())).encode())
        os._exit(0)
    os.close(write)
    told = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(copy, 0)
    return [set(map(int, told.split(",")))]
