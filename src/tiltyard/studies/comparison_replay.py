"""Replay the chains of one run against the guardrail of another run.

If the other report already contains the same chain in the same world, its trace is used. Otherwise
the chain is played again with the guardrail that the other run's directory keeps, in the jail.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from tiltyard.agents.choice import AgentChoice
from tiltyard.benign import draw_suite
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.contracts.tracks import Track
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.isolation.host.failures import GuestError
from tiltyard.isolation.host.limits import JailError
from tiltyard.judge.rotation import rotated
from tiltyard.matches.battery import Poisoned, draw_orders, poison, scenario_with
from tiltyard.matches.defense import FoundBy
from tiltyard.matches.opponents import GuestSettings, OpponentError, find_opponent
from tiltyard.matches.settings import MatchSettings
from tiltyard.reporting.builder import build_trace
from tiltyard.reporting.comparison_schema import Cell, Chain, Difference, Divergence
from tiltyard.reporting.finding_schema import Finding, Segment, Step
from tiltyard.reporting.schema import Report
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.runs.request import read_request
from tiltyard.runs.store import StoreError
from tiltyard.submissions import SubmissionError
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario


class StoredRun(Struct, frozen=True):
    """A report and the directory that contains it."""

    report: Report
    directory: Path

    @property
    def name(self) -> str:
        return self.report.run_id


def found_by_cell(report: Report, track: Track) -> dict[Cell, Finding]:
    part = report.offense if track == "offense" else report.defense
    return {} if part is None else {cell_of(one): one for one in part.found}


class CannotReplayError(Exception):
    """A chain cannot be replayed; the message says why."""


class ChainReplayer:
    """Replays the chains of one track, each against the guardrail of the other run."""

    def __init__(
        self, before: StoredRun, after: StoredRun, track: Track, stack: ExitStack, *, unsafe: bool
    ) -> None:
        self.track = track
        self.before, self.after = (
            _Side(run, track, stack, unsafe=unsafe) for run in (before, after)
        )
        self.notes: list[str] = []
        self._replayed: dict[tuple[Chain, bool, _Side], tuple[Step, ...]] = {}
        self._same_world = before.report.setting.scenarios == after.report.setting.scenarios
        self._same_guardrail = self.before.guardrail_id == self.after.guardrail_id

    def replay(self, old: Finding | None, new: Finding | None) -> tuple[bool, Divergence | None]:
        """Return whether the chain of a finding was replayed, and where the traces differ.

        `old` and `new` are the same finding in the two runs; one of them may be missing.
        """
        if self._same_guardrail:
            return True, None
        home, away = (self.before, self.after) if old is not None else (self.after, self.before)
        finding = old or new
        assert finding is not None
        steps = away.chains.get(finding.chain) if self._same_world else None
        if steps is None:
            try:
                steps = self._replay_once(finding, home, away)
            except CannotReplayError as error:
                self.notes.append(f"Some {self.track} chains could not be replayed: {error}.")
                return False, None
        if old is not None:
            return True, first_difference(old.chain, old.steps, steps)
        return True, first_difference(finding.chain, steps, finding.steps)

    def _replay_once(self, finding: Finding, home: "_Side", away: "_Side") -> tuple[Step, ...]:
        """Replay a chain, or return its earlier replay: several findings may share a chain."""
        poisoned = finding.found_by == FoundBy.TASK
        replayed = finding.chain, poisoned, away
        if replayed not in self._replayed:
            scenario = home.poisoned(finding.chain) if poisoned else home.world()[0]
            self._replayed[replayed] = _replay(finding.chain, scenario, home, away)
        return self._replayed[replayed]


class _Side:
    """One of the two runs, on one track."""

    def __init__(self, run: StoredRun, track: Track, stack: ExitStack, *, unsafe: bool) -> None:
        self.run = run
        self.by_cell = found_by_cell(run.report, track)
        part = run.report.offense if track == "offense" else run.report.defense
        found = () if part is None else part.found
        self.chains: dict[Chain, tuple[Step, ...]] = {one.chain: one.steps for one in found}
        self._track = track
        self._stack = stack
        self._unsafe = unsafe
        self._make: Callable[[], Guardrail] | None = None
        self._guest: RemoteGuardrail | None = None
        self._world: tuple[Scenario, Ruleset] | None = None
        self._poisoned: tuple[Poisoned, ...] = ()

    @property
    def _kept(self) -> Path:
        name = "submission" if self._track == "defense" else "opposing-guardrail"
        return self.run.directory / name

    @property
    def guardrail_id(self) -> object:
        """A value that is equal for equal guardrails."""
        report = self.run.report
        if self._track == "defense":
            return report.submission.digest, report.engine
        if self._kept.exists():
            return self.run.directory.resolve()
        return report.setting.offense_opponent, report.engine

    def world(self) -> tuple[Scenario, Ruleset]:
        """Return the scenario and the ruleset of this run."""
        agent = self.run.report.setting.agent
        if self._track == "offense" and not AgentChoice(agent).traits.pure:
            raise CannotReplayError(f"the agent {agent} may answer differently the second time")
        if self._world is None:
            scenario, ruleset = _world_of(self.run)
            if self._track == "defense":
                scenario = MatchSettings(scenario, ruleset).in_new_words().scenario
            self._world = scenario, ruleset
        return self._world

    def poisoned(self, chain: Chain) -> Scenario:
        """Return the scenario in which the pages and mails of a benign task carry injections."""
        if not self._poisoned:
            scenario, ruleset = self.world()
            suite = draw_suite(scenario, "", ruleset.defense)
            settings = MatchSettings(scenario, ruleset)
            self._poisoned = poison(settings, suite, draw_orders(settings, suite))
        return scenario_with(chain, self._poisoned)

    def guardrail(self) -> Guardrail:
        """Return this run's guardrail, jailed.

        One guest serves all chains; each chain begins with the guardrail's first state.
        """
        if self._make is None:
            self._make = self._open()
        if self._guest is None:
            made = self._make()
            if not isinstance(made, RemoteGuardrail):
                return made
            self._guest = made
        return self._guest

    def drop_guest(self) -> None:
        """Start a new guest for the next chain."""
        self._guest = None

    def _open(self) -> Callable[[], Guardrail]:
        report = self.run.report
        wanted = str(self._kept)
        if not self._kept.is_dir():
            if self._track == "defense" or report.setting.offense_opponent not in GUARDRAIL_LADDER:
                raise CannotReplayError(f"there is no guardrail in {self.run.directory}")
            wanted = report.setting.offense_opponent
        scratch = Path(self._stack.enter_context(TemporaryDirectory(prefix="tiltyard-compare-")))
        _, ruleset = self.world()
        try:
            opponent = find_opponent("guardrail", wanted, scratch / "guardrail")
        except (SubmissionError, OpponentError) as error:
            raise CannotReplayError(f"{self._kept}: {error}") from None
        kept = opponent.submission
        if self._track == "defense" and (kept is None or kept.digest != report.submission.digest):
            raise CannotReplayError(f"{self._kept} is not the submission of this run")
        guests = GuestSettings(self._unsafe, tuple(installed_packages(ruleset)))
        return guests.maker_of(opponent, self._stack)


def cell_of(finding: Finding) -> Cell:
    return finding.predicate, finding.source, finding.sink, finding.target, finding.route


def _world_of(run: StoredRun) -> tuple[Scenario, Ruleset]:
    setting = run.report.setting
    if len(setting.seeds) != 1:
        raise CannotReplayError("the scenario is hidden, or comes from a directory")
    try:
        ruleset = read_request(run.directory).ruleset
    except StoreError as error:
        raise CannotReplayError(str(error)) from None
    if ruleset.digest != setting.ruleset_digest:
        raise CannotReplayError(f"the ruleset in {run.directory} is not the one of its report")
    scenario = generate(setting.seeds[0])
    if setting.scenarios != (scenario.digest,):
        raise CannotReplayError("this version of Tiltyard generates another scenario for the seed")
    return scenario, ruleset


def _replay(chain: Chain, scenario: Scenario, home: _Side, away: _Side) -> tuple[Step, ...]:
    """Play a chain in a scenario of `home` with the guardrail of `away`."""
    _, ruleset = home.world()
    try:
        env = SandboxEnv(
            scenario=scenario,
            world=rotated(scenario, "first", ruleset.id, scenario.digest, "", *chain),
            guardrail=away.guardrail(),
            max_tool_hops=ruleset.play.calls_per_message,
        )
        for message in chain:
            env.interact(message)
        return build_trace(env.trace)
    except GuestError as error:
        away.drop_guest()
        raise CannotReplayError(f"the guardrail of {away.run.name} failed ({error})") from None
    except (JailError, ValueError) as error:
        raise CannotReplayError(str(error)) from None


def first_difference(
    chain: Chain, before: Sequence[Step], after: Sequence[Step]
) -> Divergence | None:
    """Return the first event at which two traces of one chain differ, or None."""
    for old, new in zip_longest(before, after):
        what = _difference(old, new)
        if what is not None:
            turn = (old or new).turn
            return Divergence(what, chain[turn] if turn < len(chain) else "", old, new)
    return None


def _difference(old: Step | None, new: Step | None) -> Difference | None:
    if old is None or new is None:
        return "end"
    if old.tool != new.tool:
        return "call"
    if old.decision != new.decision:
        return "decision"
    if _args(old) != _args(new):
        return "call"
    if (old.ok, old.error, _plain(old.output)) != (new.ok, new.error, _plain(new.output)):
        return "result"
    return None


def _args(step: Step) -> dict[str, str]:
    return {name: _plain(segments) for name, segments in step.args.items()}


def _plain(segments: Sequence[Segment]) -> str:
    """Return a text with its secrets masked, because every replay draws new ones."""
    return "".join("*" * len(one.text) if one.secret else one.text for one in segments)
