"""Guardrails compared in a small arena."""

from typing import Any

from small_runs import SMALL_ARENA
from tiltyard.contracts.decision import Decision
from tiltyard.contracts.guardrail import Context, GuardrailBase
from tiltyard.episode.conversation import open_locally
from tiltyard.reporting.arena_calibration import calibration_markdown
from tiltyard.rulesets.ruleset import read_ruleset
from tiltyard.studies.arena_calibration import Measured, calibrate_arena


class DenyAll(GuardrailBase):
    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        del tool_name, tool_args, context
        return Decision.deny("no")


def test_neither_extreme_scores() -> None:
    entrants = [
        Measured("open", "constants", open_locally(GuardrailBase)),
        Measured("shut", "constants", open_locally(DenyAll)),
    ]
    stages: list[str] = []
    done = calibrate_arena(entrants, 123, read_ruleset(SMALL_ARENA), stages.append)
    assert stages == ["building the arena", "open", "shut"]
    opened, shut = done.rows
    assert (opened.score, opened.solved, opened.breached) == (0, done.cells, done.cells)
    assert (shut.score, shut.solved, shut.breached) == (0, 0, 0)
    assert "| open | constants | 0.0 | 0 to 0 |" in calibration_markdown(done)
