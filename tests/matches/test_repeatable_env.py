"""The environment of a repeated attack: it replies as a fresh one does, and remembers."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard import AttackCandidate, AttackRunConfig, DataFlowGuardrail
from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.contracts.attack import BudgetSpentError
from tiltyard.episode.advance import advance
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.matches import repeatable_env
from tiltyard.matches.offense import play_offense
from tiltyard.matches.repeatable_env import RepeatableEnv
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.world.generate import generate

MATCH: Final = MatchSettings(generate(123), load_ruleset(), attack_runs=2)
STEPS: Final = 30
MESSAGES: Final = (
    "read the file readme.txt",
    "list the files",
    "search the web for onboarding and open the first result",
    "delete the file notes.txt",
    "hello",
)
MOVES: Final = st.lists(
    st.one_of(st.sampled_from(MESSAGES), st.sampled_from(["reset", "snapshot", "restore"])),
    max_size=25,
)


def replies_of(env: Any, moves: list[str]) -> list[Any]:
    """Make moves, and return everything that an attack can see."""
    snapshots: list[Any] = []
    seen: list[Any] = []
    for move in moves:
        if move == "reset":
            env.reset()
        elif move == "snapshot":
            snapshots.append(env.snapshot())
        elif move == "restore":
            if snapshots:
                env.restore(snapshots[len(seen) % len(snapshots)])
        else:
            try:
                seen.append(env.interact(move).after)
            except BudgetSpentError:
                seen.append("spent")
        seen.append((env.steps_left, env.steps_spent, env.export_trace_dict()))
    return seen


@given(MOVES, MOVES, st.integers(0, 25))
@settings(max_examples=40, deadline=None)
def test_a_run_that_leaves_the_path_of_the_first_sees_what_a_fresh_one_would(
    first: list[str], other: list[str], shared: int
) -> None:
    env = MATCH.open_repeatable_env(DataFlowGuardrail(), DeterministicAgent())
    second = first[:shared] + other
    for moves in (first, second):
        env.play_again(STEPS)
        fresh = MATCH.open_env(DataFlowGuardrail(), steps=STEPS)
        assert replies_of(env, moves) == replies_of(fresh, moves)


class Explores:
    """Says a message in ever new states."""

    def __init__(self, change: Callable[[int], str] = str) -> None:
        self._runs, self._change = 0, change

    def run(self, env: Any, config: AttackRunConfig) -> list[AttackCandidate]:
        del config
        self._runs += 1
        answers = [env.interact(message).answer for message in (*MESSAGES, *MESSAGES)]
        return [AttackCandidate((self._change(self._runs), *answers[:1]))]


@pytest.fixture
def advances(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the messages that an agent really worked on during the runs."""
    worked: list[str] = []

    def note_and_advance(episode: Any, message: str, max_calls: int) -> Any:
        worked.append(message)
        return advance(episode, message, max_calls)

    monkeypatch.setattr(repeatable_env, "advance", note_and_advance)
    return worked


def test_the_second_run_of_an_attack_needs_no_agent(advances: list[str]) -> None:
    match = play_offense(MATCH, Explores(lambda _run: "the same"))
    assert match.inconsistent == 0
    assert match.steps > len(MESSAGES)
    assert len(advances) == 2 * len(MESSAGES)


def test_an_attack_that_changes_is_still_found_out(advances: list[str]) -> None:
    assert play_offense(MATCH, Explores()).inconsistent == 1
    assert len(advances) == 2 * len(MESSAGES)


def test_the_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch, advances: list[str]) -> None:
    monkeypatch.setattr(repeatable_env, "MAX_BYTES", 0)
    env: RepeatableEnv = MATCH.open_repeatable_env(DataFlowGuardrail(), DeterministicAgent())
    for _ in range(2):
        env.play_again(STEPS)
        env.interact("read the file readme.txt")
    assert len(advances) == 2


def test_what_a_silent_command_writes_counts_against_the_limit(
    monkeypatch: pytest.MonkeyPatch, advances: list[str]
) -> None:
    monkeypatch.setattr(repeatable_env, "MAX_BYTES", 100_000)
    env: RepeatableEnv = MATCH.open_repeatable_env(AllowAllGuardrail(), DeterministicAgent())
    grow = f"run `echo -n {'x' * 1000} > a; cat a a a a a a a a > b; cat b b b b b b b b > c`"
    more = "run `cat b b b b b b > d`"
    for _ in range(2):
        env.play_again(STEPS)
        env.interact(grow)
        assert [event.output for event in env.interact(more).events] == [""]
    assert advances == [grow, more, more]
