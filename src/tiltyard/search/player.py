"""Play chains: restore a kept state, or replay the messages if the state is no longer kept."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from tiltyard.contracts.attack import AttackEnv
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search.archive import Chain
from tiltyard.search.footprint import START, Claim, Footprint, follow
from tiltyard.search.moves import Move
from tiltyard.search.vocabulary import Learnt, learn_from


class Players(Protocol):
    """Plays the slots of an epoch, and returns the results in the same order."""

    def play(self, moves: Sequence[Move]) -> "Sequence[Played]": ...


class Visit(Struct, frozen=True, gc=False):
    """A cell that a chain reached."""

    cell: int
    chain: Chain
    score: int
    steps: int
    decisions: str


class Kept(Struct, frozen=True, gc=False):
    """A state to return to."""

    snapshot: Any
    footprint: Footprint


class Played(Struct, frozen=True, gc=False):
    """The result of one slot: one chain that was played."""

    steps: int
    interactions: int
    visits: tuple[Visit, ...]
    """Cells that this player reached for the first time, or by a better chain."""
    familiar: tuple[int, ...]
    """Cells that this player had already returned, without their chains."""
    claims: tuple[tuple[Claim, Chain], ...]
    learnt: Learnt


class Player:
    """Plays chains in one environment, and keeps states to return to."""

    def __init__(self, env: AttackEnv, rules: SearchRules, states: int | None = None) -> None:
        self.env = env
        self.rules = rules
        self.slots = frozenset(rules.vocabulary.learns)
        env.reset()
        self._start = Kept(env.snapshot(), START)
        self._states: dict[Chain, Kept] = {}
        """Kept states by chain, the oldest first."""
        self._room = rules.states if states is None else states
        self._best: dict[int, Visit] = {}
        """The best visit of each cell that this player has returned."""
        self._claimed: dict[Claim, int] = {}
        self._learnt: set[tuple[str, str]] = set()

    def play(self, moves: Sequence[Move]) -> list[Played]:
        return [self.play_one(chain, start) for chain, start in moves]

    def play_one(self, chain: Chain, start: int) -> Played:
        """Return to the state after `start` messages of a chain, and play the rest."""
        footprint = self._return_to(chain[:start])
        steps = interactions = 0
        visits: list[Visit] = []
        familiar: list[int] = []
        found: list[tuple[Claim, Chain]] = []
        learnt: list[tuple[str, str]] = []
        for at in range(start, len(chain)):
            if footprint.steps >= self.rules.chain_steps or self.env.steps_left == 0:
                break
            before = footprint.steps
            footprint, claims, names = self._say(footprint, chain[at])
            steps += footprint.steps - before
            interactions += 1
            sofar = chain[: at + 1]
            visit = self._improve(sofar, footprint)
            if visit is None:
                familiar.append(footprint.cell)
            else:
                visits.append(visit)
            learnt += names
            found += ((claim, sofar) for claim in claims if self._is_shorter(claim, sofar))
        return Played(
            steps, interactions, tuple(visits), tuple(familiar), tuple(found), tuple(learnt)
        )

    def _say(
        self, footprint: Footprint, message: str
    ) -> tuple[Footprint, tuple[Claim, ...], Learnt]:
        events = self.env.interact(message).events
        after, claims = follow(footprint, message, events)
        names = [name for name in learn_from(events, self.slots) if name not in self._learnt]
        self._learnt.update(names)
        return after, claims, tuple(names)

    def _return_to(self, chain: Chain) -> Footprint:
        """Bring the environment to the state after a chain, from the nearest kept state."""
        at = len(chain)
        while at and chain[:at] not in self._states:
            at -= 1
        kept = self._states[chain[:at]] if at else self._start
        self.env.restore(kept.snapshot)
        footprint = kept.footprint
        if at == len(chain):
            return footprint
        for message in chain[at:]:
            if self.env.steps_left == 0:
                return footprint
            footprint = follow(footprint, message, self.env.interact(message).events)[0]
        if len(chain) - at > 1:  # To replay one message is cheaper than to keep a state.
            self._keep(chain, footprint)
        return footprint

    def _keep(self, chain: Chain, footprint: Footprint) -> None:
        if not self._room:
            return
        if len(self._states) >= self._room:
            # Drop the older half at once: a dict takes longer and longer to find its first item.
            self._states = dict([*self._states.items()][(len(self._states) + 1) // 2 :])
        self._states[chain] = Kept(self.env.snapshot(), footprint)

    def _improve(self, chain: Chain, footprint: Footprint) -> Visit | None:
        """Return a visit if it is the best one that this player knows for its cell."""
        cell, score, steps = footprint.cell, footprint.score, footprint.steps
        known = self._best.get(cell)
        if known is not None:
            mine = -score, steps, len(chain), chain
            if (-known.score, known.steps, len(known.chain), known.chain) <= mine:
                return None
            self._states.pop(known.chain, None)
        visit = self._best[cell] = Visit(cell, chain, score, steps, footprint.decisions)
        if steps < self.rules.chain_steps:
            self._keep(chain, footprint)
        return visit

    def _is_shorter(self, claim: Claim, chain: Chain) -> bool:
        known = self._claimed.get(claim)
        if known is not None and known <= len(chain):
            return False
        self._claimed[claim] = len(chain)
        return True
