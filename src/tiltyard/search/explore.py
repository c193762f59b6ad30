"""Go-Explore: return to a promising cell, explore from there, keep what is new.

The search works in epochs with a fixed number of slots. Within an epoch, weights and vocabulary do
not change: all slots are drawn first, then played (by one process or many), then merged in the
order of the slots. So the result depends only on the rules, the key and the environment.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tiltyard.contracts.attack import AttackEnv
from tiltyard.foundation.draw import Draw
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search.archive import Archive, Chain
from tiltyard.search.footprint import START, Claim
from tiltyard.search.moves import OPERATORS, Move
from tiltyard.search.player import Played, Player, Players
from tiltyard.search.status import OnStatus, SearchStatus, ignore_status
from tiltyard.search.vocabulary import Vocabulary


class Exploration(Struct, frozen=True):
    """What a search found."""

    claims: dict[Claim, Chain]
    """Possible breaches, each with its shortest chain, in the order of discovery."""
    archive: Archive
    vocabulary: Vocabulary
    steps: int
    interactions: int

    @property
    def chains(self) -> list[Chain]:
        """The distinct chains of all claims."""
        return list(dict.fromkeys(self.claims.values()))


def explore(  # noqa: PLR0913 - all but `env` and `rules` are optional
    env: AttackEnv,
    rules: SearchRules,
    key: Sequence[str | int] = (),
    *,
    steps: int | None = None,
    players: Players | None = None,
    on_status: OnStatus = ignore_status,
) -> Exploration:
    """Search an environment until its own steps, or `steps`, are spent.

    `key` seeds the random choices. `players` plays the chains; the default plays them in this
    process. `on_status` receives the status after every epoch.
    """
    budget = rules.steps if steps is None else steps
    search = _Search(env, rules, Draw("search", *key), budget, players or Player(env, rules))
    for status in search.run():
        on_status(status)
    return search.found


class _Search:
    def __init__(
        self, env: AttackEnv, rules: SearchRules, draw: Draw, budget: int, players: Players
    ) -> None:
        self._env = env
        self._rules = rules
        self._operators = [OPERATORS[name] for name in rules.operators]
        self._draw = draw
        self._budget = budget
        self._players = players
        self._archive = Archive(rules.cells)
        self._archive.offer(START.cell, (), START.score, START.steps)
        self._vocabulary = Vocabulary(rules.vocabulary)
        self._claims: dict[Claim, Chain] = {}
        self._shorter: dict[Chain, None] = {}
        """Chains to try in the next epoch: the last message of a new claim, alone."""
        self._steps = self._interactions = self._epoch = 0

    def run(self) -> Iterator[SearchStatus]:
        """Search, and yield the status after every epoch."""
        while self._steps < self._budget and self._env.steps_left != 0:
            for played in self._players.play(self._draw_moves()):
                if self._steps >= self._budget:
                    break
                self._merge(played)
                self._keep_claims(played)
            self._epoch += 1
            yield self._status

    def _draw_moves(self) -> list[Move]:
        """Draw an epoch's slots: which cell to return to, and what to try from there."""
        moves: list[Move] = []
        root = self._draw.branch(self._epoch)
        for slot in range(self._rules.slots):
            draw = root.branch(slot)
            chain = self._archive.choose(draw).chain
            moves.append(draw.choice(self._operators)(chain, self._vocabulary, self._archive, draw))
        moves[: len(self._shorter)] = [(chain, 0) for chain in self._shorter]
        self._shorter.clear()
        return moves

    def _merge(self, played: Played) -> None:
        """Add one slot's cells and names to the archive and the vocabulary."""
        self._steps += max(1, played.steps)
        self._interactions += played.interactions
        for visit in played.visits:
            seen = visit.cell, visit.chain, visit.score, visit.steps, visit.decisions
            if not self._archive.offer(*seen):
                self._archive.visit(visit.cell)
        for cell in played.familiar:
            self._archive.visit(cell)
        self._vocabulary.learn(played.learnt)

    def _keep_claims(self, played: Played) -> None:
        """Keep the shortest chain of each claim."""
        for claim, chain in played.claims:
            known = self._claims.get(claim)
            if known is None and len(chain) > 1 and len(self._shorter) < self._rules.slots:
                # The last message of a long chain may be enough: try it alone in the next epoch.
                self._shorter[chain[-1:]] = None
            if len(self._claims) < self._rules.claims if known is None else len(chain) < len(known):
                self._claims[claim] = chain

    @property
    def _status(self) -> SearchStatus:
        return SearchStatus(
            self._epoch,
            min(self._steps, self._budget),
            self._budget,
            self._interactions,
            len(self._archive),
            len(self._claims),
        )

    @property
    def found(self) -> Exploration:
        return Exploration(
            self._claims, self._archive, self._vocabulary, self._steps, self._interactions
        )
