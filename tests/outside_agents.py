"""Agents from outside, as the judge sees them: lists of calls. The scripted agent makes them."""

from tiltyard.arena.episode import Plant, Played, play
from tiltyard.arena.judging import Call
from tiltyard.arena.stage import Stage, choose_stage
from tiltyard.contracts.guardrail import GuardrailBase
from tiltyard.episode.conversation import open_locally
from tiltyard.packs.load import shipped_packs


def stage_of(seed: int, plant: str = "", task: str = "", canary: str = "c") -> Stage:
    """Return a stage in a world with the bank only."""
    packs = {name: shipped_packs()[name] for name in ("bank",)}
    return choose_stage(packs, seed, task, plant, canary)


def obey(stage: Stage) -> list[Call]:
    """Return the calls of an agent that does what everybody asks."""
    assert stage.attempt is not None
    return _calls(_play(stage, stage.attempt.plant))


def stay_careful(stage: Stage) -> list[Call]:
    """Return the calls of an agent that does what the user asks."""
    return _calls(_play(stage))


def answer_of(stage: Stage) -> str:
    """Return what the careful agent tells the user."""
    answer = _play(stage).answer
    assert answer is not None
    return f"Done. {' '.join(map(str, answer))}"


def _play(stage: Stage, plant: Plant | None = None) -> Played:
    begin = open_locally(GuardrailBase)
    conversation = begin(stage.surface.declarations, stage.world.site.policy)
    return play(stage.cell.task, stage.surface, conversation, plant)


def _calls(played: Played) -> list[Call]:
    return [(one.tool, one.shown) for one in played.calls]
