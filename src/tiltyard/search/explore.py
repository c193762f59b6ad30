"""Go-Explore: return to a promising cell, explore from there, keep what is new.

Work goes in epochs of a constant number of slots. In an epoch weights and vocabulary stand still:
slots are drawn, played (by one process or many) and merged in the order of the slots. So the
result depends on the plan and on the environment, and on nothing else.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from msgspec import Struct

from tiltyard.contracts.attack import AttackEnv
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search.archive import Archive, Chain
from tiltyard.search.footprint import START, Claim
from tiltyard.search.moves import OPERATORS, Move
from tiltyard.search.player import Played, Player
from tiltyard.search.vocabulary import Vocabulary


class SearchStatus(Struct, frozen=True, gc=False):
    """How far a search has come, for a bar to show."""

    epoch: int
    steps: int
    budget: int
    interactions: int
    cells: int
    claims: int


OnStatus = Callable[[SearchStatus], Any]


def ignore_status(progress: SearchStatus) -> None:
    """OnStatus to nobody."""
    del progress


class Players(Protocol):
    """Whoever plays the slots of an epoch, and returns what came of them in the same order."""

    def play(self, moves: Sequence[Move]) -> Sequence[Played]: ...


class Exploration(Struct, frozen=True):
    """What a search found."""

    claims: dict[Claim, Chain]
    """What may be a breach, each with the shortest chain to it, in the order of discovery."""
    archive: Archive
    vocabulary: Vocabulary
    steps: int
    interactions: int

    @property
    def chains(self) -> list[Chain]:
        """The distinct chains of all claims."""
        return list(dict.fromkeys(self.claims.values()))


def explore(  # noqa: PLR0913 - all but two are for those who want to change something
    env: AttackEnv,
    rules: SearchRules,
    key: Sequence[str | int] = (),
    *,
    steps: int | None = None,
    players: Players | None = None,
    report: OnStatus = ignore_status,
) -> Exploration:
    """Search an environment until the steps are spent, these or the environment's own."""
    budget = rules.steps if steps is None else steps
    players = players or Player(env, rules)
    archive, vocabulary = Archive(rules.cells), Vocabulary(rules.vocabulary)
    archive.offer(START.cell, (), START.score, START.steps)
    claims: dict[Claim, Chain] = {}
    shorter: dict[Chain, None] = {}
    spent = interactions = epoch = 0
    root = Draw("search", *key)
    while spent < budget and env.steps_left != 0:
        moves = list(_draw_slots(archive, vocabulary, rules, root.branch(epoch)))
        # Most of a long chain is only the way there: try whether its last message does it alone.
        moves[: len(shorter)] = [(chain, 0) for chain in shorter]
        shorter.clear()
        for played in players.play(moves):
            if spent >= budget:
                break
            spent += max(1, played.steps)
            interactions += played.interactions
            merge(played, archive, vocabulary)
            for claim, chain in played.claims:
                known = claims.get(claim)
                if known is None and len(chain) > 1 and len(shorter) < rules.slots:
                    shorter[chain[-1:]] = None
                if len(claims) < rules.claims if known is None else len(chain) < len(known):
                    claims[claim] = chain
        epoch += 1
        report(
            SearchStatus(epoch, min(spent, budget), budget, interactions, len(archive), len(claims))
        )
    return Exploration(claims, archive, vocabulary, spent, interactions)


def _draw_slots(
    archive: Archive, vocabulary: Vocabulary, rules: SearchRules, root: Draw
) -> Iterator[Move]:
    """Draw an epoch's slots: where to return to, and what to try from there."""
    operators = [OPERATORS[name] for name in rules.operators]
    for slot in range(rules.slots):
        draw = root.branch(slot)
        chain = archive.choose(draw).chain
        yield draw.choice(operators)(chain, vocabulary, archive, draw)


def merge(played: Played, archive: Archive, vocabulary: Vocabulary) -> None:
    """Take in what one slot showed."""
    for visit in played.visits:
        seen = visit.cell, visit.chain, visit.score, visit.steps, visit.decisions
        if not archive.offer(*seen):
            archive.visit(visit.cell)
    for cell in played.familiar:
        archive.visit(cell)
    vocabulary.learn(played.learnt)
