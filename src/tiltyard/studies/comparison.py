"""Two runs side by side: what changed, and at which event two traces part.

Owns what counts as a change. A chain that got past one guardrail is followed past the other: in the
other report if it is told there, and otherwise by playing it again, jailed, from what the run's
directory keeps. What cannot be played again is said, and the rest is compared all the same.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from msgspec import Struct

from tiltyard.agents.choice import AgentChoice
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.episode.guardrail_runner import RemoteGuardrail
from tiltyard.episode.sandbox_env import SandboxEnv
from tiltyard.guardrails import GUARDRAIL_LADDER
from tiltyard.isolation.host.limits import JailError
from tiltyard.isolation.host.session import GuestError
from tiltyard.judge.rotation import rotated
from tiltyard.matches.opponents import GuestSettings, OpponentError, find_opponent
from tiltyard.reporting.builder import tell_trace
from tiltyard.reporting.schema import Finding, Report, Segment, Step, TrialRow
from tiltyard.rulesets.packages import installed_packages
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.runs.request import read_request
from tiltyard.runs.store import StoreError, load_report
from tiltyard.submissions import SubmissionError
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario

Chain = tuple[str, ...]
Cell = tuple[str, str, str, str, str]
Fate = Literal["gained", "lost", "kept"]
Difference = Literal["decision", "call", "result", "end"]


class Run(Struct, frozen=True):
    """A report, and the directory that it lies in."""

    report: Report
    directory: Path


class Change(Struct, frozen=True):
    """Something that has a value in both runs; null where it has none."""

    name: str
    before: float | str | None
    after: float | str | None


class Parting(Struct, frozen=True):
    """The first event at which two traces of the same messages part."""

    what: Difference
    """`decision`: the guardrail decided otherwise. `call`: the agent made another call. `result`:
    the same call came to something else. `end`: there is no such event in one of them."""
    message: str
    """Of the user, which it belongs to."""
    before: Step | None
    after: Step | None


class Followed(Struct, frozen=True):
    """A finding of one run or of both, and what became of its chain in the other."""

    track: Track
    fate: Fate
    cell: Cell
    """Predicate, source, sink, target and route."""
    before_id: str
    after_id: str
    chain: Chain
    followed: bool
    """Whether it is known what the chain leads to past the other run's guardrail."""
    parting: Parting | None = None
    """Where the other guardrail, or the world, turned it another way. Followed and without a
    parting, a lost finding is a hole that is still there and was not found."""


class Comparison(Struct, frozen=True):
    """What changed from one run to another."""

    before: str
    after: str
    settings: tuple[Change, ...]
    """What was played otherwise: where there is any, scores say less."""
    numbers: tuple[Change, ...]
    findings: tuple[Followed, ...]
    false_positives_gained: tuple[TrialRow, ...]
    false_positives_lost: tuple[TrialRow, ...]
    notes: tuple[str, ...]
    """What could not be compared, and why."""

    def having(self, track: Track, fate: str) -> list[Followed]:
        return [one for one in self.findings if (one.track, one.fate) == (track, fate)]


class NotAgainError(Exception):
    """A chain cannot be played again, and why."""


def open_run(path: Path) -> Run:
    """Read a report from its file."""
    return Run(load_report(path), path.parent)


def compare(before: Run, after: Run, *, unsafe: bool = False) -> Comparison:
    """Say what changed. Guardrails are asked again in the jail, or without one by one's wish."""
    notes = [
        f"{_name(run)} is a restricted report: it has numbers alone."
        for run in (before, after)
        if run.report.restricted
    ]
    findings: list[Followed] = []
    with ExitStack() as stack:
        for track in TRACKS:
            absent = [run for run in (before, after) if not _played(run.report, track)]
            if absent:
                if len(absent) == 1:
                    notes.append(f"{_name(absent[0])} has no {track} match to compare.")
                continue
            there = _Following(before, after, track, stack, unsafe=unsafe)
            findings += _follow_all(there)
            notes += there.notes
    gained, lost = _false_positives(before.report, after.report)
    then, now = _numbers(before.report), _numbers(after.report)
    if any(_played(before.report, track) != _played(after.report, track) for track in TRACKS):
        # A sum of two matches beside one of them says nothing.
        then.pop("final score")
        now.pop("final score")
    return Comparison(
        _name(before),
        _name(after),
        tuple(_changed(_settings(before.report), _settings(after.report))),
        tuple(_beside(then, now)),
        tuple(findings),
        gained,
        lost,
        tuple(dict.fromkeys(notes)),
    )


def _played(report: Report, track: Track) -> bool:
    return (report.offense if track == "offense" else report.defense) is not None


def _name(run: Run) -> str:
    return run.report.run_id


def _settings(report: Report) -> dict[str, Any]:
    setting = report.setting
    return {
        "engine": report.engine,
        "ruleset": f"{setting.ruleset} ({setting.ruleset_digest[:8]})",
        "budget": setting.budget,
        "seeds": ", ".join(map(str, setting.seeds)) or "hidden, or a scenario of one's own",
        "scenario": ", ".join(digest[:8] for digest in setting.scenarios),
        "agent": setting.agent,
        "offense opponent": setting.offense_opponent,
        "defense opponent": setting.defense_opponent,
        "key": setting.key,
        "isolation level": report.isolation.level,
    }


def _numbers(report: Report) -> dict[str, Any]:
    numbers: dict[str, Any] = {"final score": report.final_score}
    offense, defense = report.offense, report.defense
    if offense is not None:
        numbers |= {
            "offense score": offense.score,
            "raw": offense.raw,
            "cores": offense.cores,
            "unique cells": offense.unique_cells,
            "findings": offense.findings,
        }
        for name, count in offense.findings_by_predicate.items():
            numbers[f"findings: {name}"] = count
    if defense is not None:
        numbers |= {"defense score": defense.score, "breaches": defense.breaches}
        for name, count in defense.breaches_by_predicate.items():
            numbers[f"breaches: {name}"] = count
        numbers["false positives"] = defense.false_positives
        for name, count in defense.false_positives_by_operation.items():
            numbers[f"false positives: {name}"] = count
    return numbers


def _beside(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    """Yield the totals, changed or not, and of what they are made of that which changed."""
    for name in dict.fromkeys([*before, *after]):
        part = ": " in name
        # Where a total is known, what it does not name is nought.
        otherwise = [
            0 if part and name.split(":")[0] in known else None for known in (before, after)
        ]
        change = Change(name, before.get(name, otherwise[0]), after.get(name, otherwise[1]))
        if not part or change.before != change.after:
            yield change


def _changed(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for name, value in before.items():
        if value != after[name]:
            yield Change(name, value, after[name])


def _false_positives(
    before: Report, after: Report
) -> tuple[tuple[TrialRow, ...], tuple[TrialRow, ...]]:
    """Return the benign trials that fail now and did not, and the other way round."""
    if before.defense is None or after.defense is None:
        return (), ()
    then, now = (
        {_trial(row): row for row in one.trials} for one in (before.defense, after.defense)
    )
    both = [(then[key], row) for key, row in now.items() if key in then]
    gained = (new for old, new in both if new.false_positive and not old.false_positive)
    lost = (old for old, new in both if old.false_positive and not new.false_positive)
    return tuple(gained), tuple(lost)


def _trial(row: TrialRow) -> tuple[Any, ...]:
    # Another scenario has other tasks of the same name, and they cannot be compared one by one.
    return row.operation, row.variant, row.messages


class _Following:
    """Plays chains of one run past the guardrail of the other, in one track."""

    def __init__(
        self, before: Run, after: Run, track: Track, stack: ExitStack, *, unsafe: bool
    ) -> None:
        self.track = track
        self.before, self.after = (
            _Side(run, track, stack, unsafe=unsafe) for run in (before, after)
        )
        self.notes: list[str] = []
        self._played: dict[tuple[Chain, _Side], tuple[Step, ...]] = {}
        self.same_world = before.report.setting.scenarios == after.report.setting.scenarios
        self.same_guardrail = self.before.guardrail_id == self.after.guardrail_id

    def follow(self, old: Finding | None, new: Finding | None) -> tuple[bool, Parting | None]:
        """Follow the older of two findings past the other run's guardrail."""
        if self.same_guardrail:
            return True, None
        home, away = (self.before, self.after) if old is not None else (self.after, self.before)
        finding = old or new
        assert finding is not None
        told = away.chains.get(finding.chain) if self.same_world else None
        if told is None:
            try:
                told = self._play_again(finding.chain, home, away)
            except NotAgainError as error:
                self.notes.append(f"Not every {self.track} chain could be played again: {error}.")
                return False, None
        if old is not None:
            return True, part(old.chain, old.steps, told)
        return True, part(finding.chain, told, finding.steps)

    def _play_again(self, chain: Chain, home: "_Side", away: "_Side") -> tuple[Step, ...]:
        """Play a chain once, however many findings share it."""
        if (chain, away) not in self._played:
            self._played[chain, away] = _play_again(chain, home, away)
        return self._played[chain, away]


def _follow_all(there: _Following) -> Iterator[Followed]:
    then, now = there.before.by_cell, there.after.by_cell
    for cell in sorted({*then, *now}):
        old, new = then.get(cell), now.get(cell)
        fate: Fate = "gained" if old is None else "lost" if new is None else "kept"
        followed, parting = there.follow(old, new)
        yield Followed(
            track=there.track,
            fate=fate,
            cell=cell,
            before_id="" if old is None else old.id,
            after_id="" if new is None else new.id,
            chain=next(one.chain for one in (old, new) if one is not None),
            followed=followed,
            parting=parting,
        )


class _Side:
    """One run, as far as one track is concerned."""

    def __init__(self, run: Run, track: Track, stack: ExitStack, *, unsafe: bool) -> None:
        self.run = run
        part = run.report.offense if track == "offense" else run.report.defense
        found = () if part is None else part.found
        self.by_cell: dict[Cell, Finding] = {cell_of(one): one for one in found}
        self.chains: dict[Chain, tuple[Step, ...]] = {one.chain: one.steps for one in found}
        self._track = track
        self._stack = stack
        self._unsafe = unsafe
        self._make: Callable[[], Guardrail] | None = None
        self._guest: RemoteGuardrail | None = None
        self._world: tuple[Scenario, Ruleset] | None = None

    @property
    def _kept(self) -> Path:
        name = "submission" if self._track == "defense" else "opposing-guardrail"
        return self.run.directory / name

    @property
    def guardrail_id(self) -> object:
        """What tells this guardrail from another without asking it."""
        report = self.run.report
        if self._track == "defense":
            return report.submission.digest, report.engine
        if self._kept.exists():
            return self.run.directory.resolve()
        return report.setting.offense_opponent, report.engine

    def world(self) -> tuple[Scenario, Ruleset]:
        """Return where this run was played."""
        agent = self.run.report.setting.agent
        if self._track == "offense" and not AgentChoice(agent).traits.pure:
            raise NotAgainError(f"the agent {agent} is not asked again: it may answer differently")
        if self._world is None:
            self._world = _world_of(self.run)
        return self._world

    def guardrail(self) -> Guardrail:
        """Return the guardrail that this run was played with, jailed.

        One guest serves all chains, from its first state each time.
        """
        if self._make is None:
            self._make = self._open()
        if self._guest is None:
            made = self._make()
            if not isinstance(made, RemoteGuardrail):
                return made
            self._guest = made
        return self._guest

    def give_up(self) -> None:
        """Ask another guest the next time."""
        self._guest = None

    def _open(self) -> Callable[[], Guardrail]:
        report = self.run.report
        wanted = str(self._kept)
        if not self._kept.is_dir():
            if self._track == "defense" or report.setting.offense_opponent not in GUARDRAIL_LADDER:
                raise NotAgainError(f"there is no guardrail in {self.run.directory}")
            wanted = report.setting.offense_opponent
        scratch = Path(self._stack.enter_context(TemporaryDirectory(prefix="tiltyard-compare-")))
        _, ruleset = self.world()
        try:
            opponent = find_opponent("guardrail", wanted, scratch / "guardrail")
        except (SubmissionError, OpponentError) as error:
            raise NotAgainError(f"{self._kept}: {error}") from None
        kept = opponent.submission
        if self._track == "defense" and (kept is None or kept.digest != report.submission.digest):
            raise NotAgainError(f"{self._kept} is not what was played")
        guests = GuestSettings(self._unsafe, tuple(installed_packages(ruleset)))
        return guests.maker_of(opponent, self._stack)


def cell_of(finding: Finding) -> Cell:
    return finding.predicate, finding.source, finding.sink, finding.target, finding.route


def _world_of(run: Run) -> tuple[Scenario, Ruleset]:
    setting = run.report.setting
    if len(setting.seeds) != 1:
        raise NotAgainError("the scenario was a hidden one, or one's own")
    try:
        ruleset = read_request(run.directory).ruleset
    except StoreError as error:
        raise NotAgainError(str(error)) from None
    if ruleset.digest != setting.ruleset_digest:
        raise NotAgainError(f"{run.directory} has another ruleset than its report")
    scenario = generate(setting.seeds[0])
    if setting.scenarios != (scenario.digest,):
        raise NotAgainError("the scenario is not the one that this version of Tiltyard generates")
    return scenario, ruleset


def _play_again(chain: Chain, home: _Side, away: _Side) -> tuple[Step, ...]:
    """Play a chain in its own world, past the other run's guardrail."""
    scenario, ruleset = home.world()
    try:
        env = SandboxEnv(
            scenario=scenario,
            world=rotated(scenario, "first", ruleset.id, scenario.digest, "", *chain),
            guardrail=away.guardrail(),
            max_tool_hops=ruleset.play.calls_per_message,
        )
        for message in chain:
            env.interact(message)
        return tell_trace(env.trace)
    except GuestError as error:
        away.give_up()
        raise NotAgainError(f"the guardrail of {_name(away.run)} failed ({error})") from None
    except (JailError, ValueError) as error:
        raise NotAgainError(str(error)) from None


def part(chain: Chain, before: Sequence[Step], after: Sequence[Step]) -> Parting | None:
    """Return where two traces of one chain part, or None if they do not."""
    for old, new in zip_longest(before, after):
        what = _difference(old, new)
        if what is not None:
            turn = (old or new).turn
            return Parting(what, chain[turn] if turn < len(chain) else "", old, new)
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
    """Return a text without its secrets, which are drawn anew for every replay."""
    return "".join("*" * len(one.text) if one.secret else one.text for one in segments)
