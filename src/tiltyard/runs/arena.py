"""Play the defense match of the arena in the jail, one world at a time."""

from collections.abc import Sequence
from contextlib import ExitStack

from tiltyard.contracts.declaration import Declaration
from tiltyard.contracts.policy import Policy
from tiltyard.isolation.host.failures import GuardrailFault
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.isolation.host.jailed_conversation import JailedConversation
from tiltyard.matches.arena import PlayedCell, build_world, play_cells
from tiltyard.packs.load import shipped_packs
from tiltyard.rulesets.ruleset import ArenaRules
from tiltyard.runs.stage import Stage


def arena_rules(stage: Stage) -> ArenaRules:
    rules = stage.job.rules.arena
    assert rules is not None, "only rulesets with an arena have such matches"
    return rules


def count_worlds(stage: Stage) -> int:
    """Return the number of worlds to play: with sealed tasks, the public ones follow."""
    worlds = arena_rules(stage).worlds
    return worlds if stage.job.worlds.sealed is None else 2 * worlds


def play_arena_world(stage: Stage, number: int) -> list[PlayedCell]:
    """Play the cells of one world, each conversation with a fresh guest."""
    job, rules = stage.job, arena_rules(stage)
    packs = job.packs if number < rules.worlds else shipped_packs()
    arena = build_world(packs, job.arena_key, rules, number % rules.worlds)
    shown = f"arena world {number + 1} of {count_worlds(stage)}"
    stage.progress.begin(shown, len(arena.cells))
    with ExitStack() as stack, stage.open_log(f"arena-{number}", PlayedCell) as log:
        conversations = _Conversations(stage.open_pool("guardrail", stack))
        return play_cells(
            arena,
            conversations.open,
            log=log,
            take_faults=conversations.take_faults,
            progress=stage.progress,
        )


class _Conversations:
    """Opens conversations with fresh guests, and remembers them to read their faults."""

    def __init__(self, pool: GuestPool) -> None:
        self._pool = pool
        self._opened: list[JailedConversation] = []

    def open(self, tools: Sequence[Declaration], policy: Policy) -> JailedConversation:
        self._opened.append(self._pool.conversation(tools, policy))
        return self._opened[-1]

    def take_faults(self) -> list[GuardrailFault]:
        opened, self._opened = self._opened, []
        return [fault for conversation in opened for fault in conversation.take_faults()]
