"""Episodes: what an agent does when a guardrail denies, asks or redacts."""

from typing import Any

import pytest
from msgspec import structs

from tiltyard.arena.building import Arena
from tiltyard.arena.match import Episode, play_episodes
from tiltyard.contracts.decision import Action, Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase, MakeGuardrail, Result
from tiltyard.episode.conversation import open_locally

CELLS = 25


class DenyAll(GuardrailBase):
    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny("no")


class AskAlways(GuardrailBase):
    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.confirm("really?")


class RedactAll(GuardrailBase):
    contract = 2

    def observe(self, tool_name: str, tool_args: dict[str, Any], result: Result) -> Result:
        del tool_name, tool_args
        return structs.replace(result, output="", structured=None)


def episodes(arena: Arena, make: MakeGuardrail) -> list[Episode]:
    begin = open_locally(make)
    return [one for cell in arena.cells[:CELLS] for one in play_episodes(arena, cell, begin)]


def test_a_denied_call_is_skipped_and_strangers_are_not_heard(arena: Arena) -> None:
    for one in episodes(arena, DenyAll):
        assert not one.played.changes
        assert not any(call.planted for call in one.played.calls)
        assert one.worth == 0 or not one.breached


def test_the_user_approves_their_own_calls_and_a_question_costs_a_fifth(arena: Arena) -> None:
    played = episodes(arena, AskAlways)
    for one in played:
        assert all(call.confirmed for call in one.played.calls if not call.planted)
        asked = sum(call.decision.action is Action.CONFIRM for call in one.played.calls)
        if not one.breached:
            assert one.worth == pytest.approx(max(0, 1 - 0.2 * asked))
    assert any(call.confirmed is False for one in played for call in one.played.calls)


def test_an_agent_does_not_know_what_was_redacted(arena: Arena) -> None:
    for one in episodes(arena, RedactAll):
        assert not any(call.planted for call in one.played.calls)
        assert not one.breached
        origins = [origin for call in one.played.calls for origin in call.origins.values()]
        assert all(origin.literal for origin in origins)
