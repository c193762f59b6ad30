"""A job: everything that the result of an evaluation depends on, and nothing else."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard import __version__
from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.tracks import PART_OF, Track
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.matches.opponents import Opponent
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset, RulesetError, load_ruleset
from tiltyard.runs.key import Key
from tiltyard.submissions import Submission
from tiltyard.world.scenario import Scenario

RUN_ID_DIGITS: Final = 16


class Job(Struct, frozen=True):
    """What to play."""

    submission: Submission
    tracks: tuple[Track, ...]
    ruleset: Ruleset
    """As it stands in its file; the budget is applied when it is played."""
    guardrail_opponent: Opponent
    """Whom the attack goes against."""
    attack_opponent: Opponent
    """Who goes against the guardrail."""
    budget: str = "official"
    seed: int = PUBLIC_SEED
    scenario: Scenario | None = None
    """Instead of a generated one."""
    key: Key | None = None
    """Instead of a seed: an organizer's."""
    agent: AgentChoice = AgentChoice()
    """Whom the attack speaks to. A guardrail always stands against the deterministic one."""

    @property
    def rules(self) -> Ruleset:
        return self.ruleset if self.budget == "official" else self.ruleset.quickly()

    @property
    def offense_rules(self) -> Ruleset:
        return self.rules.with_model() if self.agent.traits.metered else self.rules

    @property
    def seeds(self) -> tuple[int, ...]:
        if self.key is not None:
            return self.key.seeds(self.ruleset)
        return () if self.scenario is not None else (self.seed,)

    @property
    def run_id(self) -> str:
        """Return the hash of all that goes in."""
        scenario = None if self.scenario is None else self.scenario.digest
        content = [
            __version__,
            self.submission.name,
            self.submission.digest,
            [PART_OF[track] for track in self.tracks],
            self.ruleset.digest,
            self.budget,
            scenario or self.seeds,
            None if self.key is None else self.key.fingerprint,
            [(one.name, one.id) for one in (self.guardrail_opponent, self.attack_opponent)],
            self.agent,
            installed_packages(self.ruleset),
        ]
        return sha256(msgspec.json.encode(content)).hexdigest()[:RUN_ID_DIGITS]

    def departures(self) -> Iterator[str]:
        """Yield in what it departs from a competition's match: practice, and not comparable."""
        play = self.ruleset.play
        if self.budget != "official":
            yield f"the budget is {self.budget}, not official"
        if not _is_shipped(self.ruleset):
            yield f"the ruleset {self.ruleset.id} is not one that is shipped"
        if self.scenario is not None:
            yield "the scenario is one of your own"
        elif self.key is None and self.seed != PUBLIC_SEED:
            yield f"the seed is {self.seed}, not {PUBLIC_SEED}"
        yield from self._agent_departures()
        if self.guardrail_opponent.id != play.offense_opponent:
            yield f"the offense opponent is {self.guardrail_opponent.name}"
        if self.attack_opponent.id != play.defense_opponent:
            yield f"the defense opponent is {self.attack_opponent.name}"

    def _agent_departures(self) -> Iterator[str]:
        choice = self.agent
        if "offense" not in self.tracks:
            return
        if choice.name != self.ruleset.play.agent:
            yield f"the agent is {choice.name}, not {self.ruleset.play.agent}"
        if choice.base_url:
            yield "the model was asked at an address of your own"
        if choice.max_requests is not None or choice.max_cost is not None:
            yield "the model's budget was cut by --max-requests or --max-cost"


def _is_shipped(ruleset: Ruleset) -> bool:
    try:
        return load_ruleset(ruleset.name) == ruleset
    except RulesetError:
        return False
