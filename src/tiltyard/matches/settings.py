"""What the two matches share: their settings, their search environment and their digest."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from tiltyard.benign.injections import add_foreign_lines, reword_planted
from tiltyard.contracts.agent import Agent
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.foundation.draw import Draw
from tiltyard.judge.findings import Finding
from tiltyard.judge.judge import Judge
from tiltyard.judge.rotation import rotated
from tiltyard.matches.repeatable_env import RepeatableEnv
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.world.scenario import Scenario
from tiltyard.world.state import World


class MatchError(ValueError):
    """A match that cannot be played, or that stopped before its end. It has no score."""


class MatchSettings(Struct, frozen=True):
    """Where a match is played and by which rules. The result depends on the first four fields."""

    scenario: Scenario
    ruleset: Ruleset
    key: str = ""
    """The worlds of the search and of the judge are drawn from it. Empty in practice runs."""
    steps: int | None = None
    """The attacker's budget; None takes the ruleset's."""
    workers: int = 1
    """Processes of the baseline's search. The result is the same for any number."""
    attack_runs: int = 1
    """How often an offense match runs the attack. The first run counts; the others are compared
    with it."""
    salt: str | None = None
    """The order of judged, compared and benign episodes is drawn from it. None draws a new order
    for every match, so that a guest cannot compute it. The result is the same for any order."""

    batteries: Path | None = None
    """The directory to store batteries in. None keeps them in memory only."""

    def __post_init__(self) -> None:
        for name in ("steps", "workers", "attack_runs"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise MatchError(f"`{name}` is {number}, and must be at least 1")

    @property
    def names(self) -> tuple[str, str, str]:
        """What every drawn part of a match depends on: the ruleset, the world and the key."""
        return self.ruleset.id, self.scenario.digest, self.key

    def in_scenario(self, scenario: Scenario) -> "MatchSettings":
        return structs.replace(self, scenario=scenario)

    def in_new_words(self) -> "MatchSettings":
        """Return the settings with new words in the documents: other orders, and foreign lines.

        The sentences of generated scenarios are public. Defense matches are played in new words, so
        that a guardrail knows neither the orders nor the ordinary sentences by heart.
        """
        draw = Draw("new words", *self.names)
        reworded = reword_planted(self.scenario, draw)
        foreign = add_foreign_lines(reworded, draw.branch("foreign lines"))
        return self.in_scenario(foreign)

    def open_env(
        self, guardrail: Guardrail, agent: Agent | None = None, steps: int | None = None
    ) -> SandboxEnv:
        """Open an environment for the attacker. Its secrets occur in no replay of the judge."""
        return SandboxEnv(**self._env_settings(guardrail, agent, steps), fold=True)

    def open_repeatable_env(self, guardrail: Guardrail, agent: Agent) -> RepeatableEnv:
        """Open the same environment, for an attack that runs more than once."""
        return RepeatableEnv(**self._env_settings(guardrail, agent, None))

    def _env_settings(
        self, guardrail: Guardrail, agent: Agent | None, steps: int | None
    ) -> dict[str, Any]:
        return {
            "agent": agent,
            "guardrail": guardrail,
            "scenario": self.scenario,
            "world": rotated(self.scenario, "search", *self.names),
            "max_tool_hops": self.ruleset.play.calls_per_message,
            "max_steps": steps,
        }

    def world_of(self, messages: Sequence[str]) -> World:
        """Return the world in which the judge replays messages: its secrets are drawn for them."""
        return rotated(self.scenario, "first", *self.names, *messages)

    def make_judge(self, guardrail: Guardrail, agent: Agent | None = None) -> Judge:
        return Judge(self.scenario, guardrail, ruleset=self.ruleset, agent=agent, key=self.key)

    def digest_of(self, findings: Sequence[Finding], score: Any, *more: Any) -> str:
        """Return the SHA-256 of a match's results. It does not depend on clocks or caches."""
        found = [(finding.cell, finding.candidate, finding.chain) for finding in findings]
        content = self.ruleset.id, self.scenario.digest, (score, found, *more)
        return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


def check_guardrail_maker(make_guardrail: object) -> None:
    """Raise if `make_guardrail` is a guardrail object instead of its class."""
    if not callable(make_guardrail):
        name = type(make_guardrail).__name__
        raise MatchError(f"a match makes its own guardrails: pass the class {name}, not an object")
