"""A job: everything that the result of an evaluation depends on, and nothing else."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tiltyard import __version__
from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.tracks import PART_OF, PARTS, TRACK_OF, Part, Track
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.matches.opponents import Opponent, OpponentError, find_opponent
from tiltyard.matches.vocabulary import check_vocabulary
from tiltyard.packs.load import shipped_packs
from tiltyard.packs.schema import Pack
from tiltyard.packs.sealed import MIN_TASKS, Sealed, count_tasks
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset, RulesetError, load_ruleset
from tiltyard.runs.key import Key
from tiltyard.runs.request import Request
from tiltyard.submissions import Submission, SubmissionError, open_submission
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

RUN_ID_DIGITS: Final = 16
PUBLIC_TASKS: Final = "public"


class Worlds(Struct, frozen=True):
    """Which worlds to play in, if not the one of the request's seed."""

    scenario: Scenario | None = None
    """A scenario of your own."""
    key: Key | None = None
    """An organizer's key. The official seeds are drawn from it."""
    sealed: Sealed | None = None
    """An organizer's tasks for an arena, in place of the public ones."""

    @property
    def fingerprint(self) -> str:
        """The public name of the key; empty without a key."""
        return "" if self.key is None else self.key.fingerprint


class Game(Struct, frozen=True):
    """One world to play the matches in."""

    number: int
    scenario: Scenario
    key: str


class Job(Struct, frozen=True):
    """What to play."""

    submission: Submission
    tracks: tuple[Track, ...]
    ruleset: Ruleset
    """The ruleset without changes; `rules` applies the budget."""
    guardrail_opponent: Opponent
    """The guardrail of the offense match."""
    attack_opponent: Opponent
    """The attack of the defense match."""
    budget: str = "official"
    seed: int = PUBLIC_SEED
    worlds: Worlds = Worlds()
    agent: AgentChoice = AgentChoice()
    """The agent of the offense match. The defense match always has the deterministic agent."""

    @property
    def rules(self) -> Ruleset:
        return self.ruleset if self.budget == "official" else self.ruleset.with_quick_budgets()

    @property
    def offense_rules(self) -> Ruleset:
        return self.rules.with_model() if self.agent.traits.metered else self.rules

    @property
    def packs(self) -> dict[str, Pack]:
        """The packs of an arena."""
        return shipped_packs() if self.worlds.sealed is None else self.worlds.sealed.packs

    @property
    def tasks(self) -> str:
        """The public name of an arena's tasks."""
        return PUBLIC_TASKS if self.worlds.sealed is None else self.worlds.sealed.fingerprint

    @property
    def arena_key(self) -> str:
        """The key that determines an arena."""
        key = self.worlds.key
        return f"seed {self.seed}" if key is None else key.arena(self.ruleset)

    @property
    def seeds(self) -> tuple[int, ...]:
        if self.worlds.key is not None and self.ruleset.arena is not None:
            return ()
        if self.worlds.key is not None:
            return self.worlds.key.seeds(self.ruleset)
        return () if self.worlds.scenario is not None else (self.seed,)

    def games(self) -> tuple[Game, ...]:
        """Generate the worlds to play in. An arena has worlds of its own."""
        key = self.worlds.key
        if self.ruleset.arena is not None:
            return ()
        if self.worlds.scenario is not None:
            return (Game(1, self.worlds.scenario, ""),)
        return tuple(
            Game(number, generate(seed), "" if key is None else key.branch(seed))
            for number, seed in enumerate(self.seeds, 1)
        )

    @property
    def run_id(self) -> str:
        """The hash of everything that goes in."""
        scenario = self.worlds.scenario
        content: list[Any] = [
            __version__,
            self.submission.name,
            self.submission.digest,
            [PART_OF[track] for track in self.tracks],
            self.ruleset.digest,
            self.budget,
            self.seeds if scenario is None else scenario.digest,
            self.worlds.fingerprint or None,
            [(one.name, one.id) for one in (self.guardrail_opponent, self.attack_opponent)],
            self.agent,
            installed_packages(self.ruleset),
        ]
        if self.ruleset.arena is not None:
            content.append(self.tasks)
        return sha256(msgspec.json.encode(content)).hexdigest()[:RUN_ID_DIGITS]

    def departures(self) -> Iterator[str]:
        """Yield every difference from a competition's match. With any, the run is practice."""
        play = self.ruleset.play
        yield from departures_of(self.ruleset, self.budget)
        if self.worlds.scenario is not None:
            yield "the scenario is one of your own"
        elif self.worlds.key is None and self.seed != PUBLIC_SEED:
            yield f"the seed is {self.seed}, not {PUBLIC_SEED}"
        yield from self._agent_departures()
        if self.ruleset.arena is not None and self.worlds.key and not self.worlds.sealed:
            yield "it was played with the public tasks; official runs need --sealed"
        if self.worlds.sealed is not None and count_tasks(self.worlds.sealed) < MIN_TASKS:
            yield f"it has fewer than {MIN_TASKS} sealed tasks"
        if self.guardrail_opponent.id != play.offense_opponent:
            yield f"the offense opponent is {self.guardrail_opponent.name}"
        if self.attack_opponent.id != play.defense_opponent:
            yield f"the defense opponent is {self.attack_opponent.name}"

    def _agent_departures(self) -> Iterator[str]:
        choice = self.agent
        if "offense" not in self.tracks:
            return
        if choice.is_own:
            yield f"the agent {choice.name} is your own code"
        elif choice.name != self.ruleset.play.agent:
            yield f"the agent is {choice.name}, not {self.ruleset.play.agent}"
        if choice.base_url:
            yield "the model was asked at an address of your own"
        if choice.max_requests is not None or choice.max_cost is not None:
            yield "the model's budget was cut by --max-requests or --max-cost"


def departures_of(ruleset: Ruleset, budget: str) -> Iterator[str]:
    """Yield the differences from a competition's match that every run with these terms has."""
    if budget != "official":
        yield f"the budget is {budget}, not official"
    if not _is_shipped(ruleset):
        yield f"the ruleset {ruleset.id} is not one that is shipped"


def make_job(request: Request, scratch: Path, worlds: Worlds | None = None) -> Job:
    """Read the submission and the opponents into `scratch`, and return what to play."""
    check_vocabulary(request.ruleset.search.vocabulary)
    _check_arena(request, worlds or Worlds())
    submission = open_submission(Path(request.submission), scratch / "submission")
    tracks = _find_tracks(request, submission)
    opponents = _find_opponents(request, tracks, scratch)
    return Job(
        submission,
        tracks,
        request.ruleset,
        opponents["guardrail"],
        opponents["attack"],
        request.budget,
        request.seed,
        worlds or Worlds(),
        request.agent,
    )


def _check_arena(request: Request, worlds: Worlds) -> None:
    """Raise if the request asks for something that its ruleset does not have."""
    rules = request.ruleset
    if rules.arena is None:
        if worlds.sealed is not None:
            raise RulesetError(f"the ruleset {rules.id} has no tasks to seal; leave out --sealed")
        return
    if "offense" in request.tracks:
        raise RulesetError(
            f"the ruleset {rules.id} has no offense track; play --track defense, or play offense "
            "with --ruleset design"
        )
    if worlds.scenario is not None:
        raise RulesetError(f"the ruleset {rules.id} makes its own worlds; leave out --scenario")
    if request.opponent:
        raise RulesetError(f"the ruleset {rules.id} has its own attacks; leave out --opponent")
    if worlds.sealed is not None and worlds.key is None:
        raise RulesetError("--sealed needs --key: only an official run plays sealed tasks")


def _find_tracks(request: Request, submission: Submission) -> tuple[Track, ...]:
    if request.ruleset.arena is not None:
        submission.module("guardrail")
        return ("defense",)
    for track in request.tracks:
        submission.module(PART_OF[track])
    for part in () if request.tracks else submission.rivals:
        submission.module(part)  # Raises: the author has to choose one of them.
    return request.tracks or tuple(TRACK_OF[part] for part in PARTS if part in submission.modules)


def _find_opponents(
    request: Request, tracks: tuple[Track, ...], scratch: Path
) -> dict[Part, Opponent]:
    """Return the ruleset's opponents, with the request's opponent in place of one where it fits.

    An attack fits only the defense track, a guardrail only the offense track. Raise if the
    request's opponent fits no track.
    """
    play = request.ruleset.play
    found: dict[Part, Opponent] = {
        "guardrail": find_opponent("guardrail", play.offense_opponent, scratch),
        "attack": find_opponent("attack", play.defense_opponent, scratch),
    }
    problems: list[Exception] = []
    for track in tracks if request.opponent else ():
        other: Part = "guardrail" if track == "offense" else "attack"
        try:
            found[other] = find_opponent(other, request.opponent, scratch / f"opposing-{other}")
        except (OpponentError, SubmissionError) as error:
            problems.append(error)
    if problems and len(problems) == len(tracks):
        raise problems[0]
    return found


def _is_shipped(ruleset: Ruleset) -> bool:
    try:
        return load_ruleset(ruleset.name) == ruleset
    except RulesetError:
        return False
