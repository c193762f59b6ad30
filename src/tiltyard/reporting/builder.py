"""Build the parts of a report from findings, traces, trials and the archive of a search."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from tiltyard.benign import Trial
from tiltyard.contracts.trace import Event, Trace, public
from tiltyard.judge.candidates import Refused
from tiltyard.judge.cells import Cell
from tiltyard.judge.findings import Finding as Judged
from tiltyard.judge.predicates import SEVERITY
from tiltyard.reporting.finding_schema import Finding, Segment, Step
from tiltyard.reporting.schema import Formula, Place, TrialRow
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.search import Archive, follow
from tiltyard.search.footprint import START, explain
from tiltyard.world.results import Argument
from tiltyard.world.state import Deleted, Effect, Mailed, Posted, Wrote
from tiltyard.world.text import MACHINE, USER, Derived, Origin, Text

MAX_SHOWN_CHARS: Final = 4_000
"""The limit for one argument or output. A report is for people; the kept traces hold everything."""


def build_findings(
    findings: Sequence[Judged],
    prefix: str,
    ruleset: Ruleset,
    found_by: Callable[[Judged], str] = lambda _: "attack",
) -> tuple[Finding, ...]:
    """Return all findings of a match, most valuable first.

    The first finding of each core carries the core's weight.
    """
    built: list[Finding] = []
    counted: set[tuple[str, str, str]] = set()
    weights = ruleset.attack.weights
    for number, finding in enumerate(in_order(findings, ruleset), 1):
        cell = finding.cell
        points = ruleset.attack.points_per_cell
        if cell.core not in counted:
            counted.add(cell.core)
            points += weights[cell.predicate]
        built.append(
            Finding(
                id=f"{prefix}{number}",
                predicate=cell.predicate.value,
                severity=SEVERITY[cell.predicate],
                source=cell.source.value,
                sink=cell.sink.value,
                target=cell.target.value,
                route=cell.route.value,
                points=points,
                chain=finding.chain,
                answers=tuple(finding.trace.answers),
                documents=finding.documents,
                encodings=finding.encodings,
                counterfactual=finding.counterfactual,
                steps=build_trace(finding.trace, finding.path, finding.sink),
                found_by=found_by(finding),
            )
        )
    return tuple(built)


def in_order(findings: Sequence[Judged], ruleset: Ruleset) -> list[Judged]:
    """Return findings in the order of a report: the highest weight first."""
    weights = ruleset.attack.weights
    return sorted(findings, key=lambda found: (-weights[found.cell.predicate], found.cell))


def build_trace(
    trace: Trace, path: Sequence[int] = (), sink: Sequence[int] = ()
) -> tuple[Step, ...]:
    """Return the steps of a trace, with every text divided by its authors."""
    return tuple(
        _build_step(event, event.index in path, event.index in sink) for event in trace.events
    )


def _build_step(event: Event, on_path: bool, is_sink: bool) -> Step:  # noqa: FBT001 - two marks
    call, result = event.ran or event.call, event.result
    changed = [name for name, value in call.args.items() if value != event.call.args.get(name)]
    return Step(
        index=event.index,
        turn=event.turn,
        tool=call.tool,
        args={name: _segments_of(value) for name, value in call.args.items()},
        decision=event.decision.action.value,
        reason=event.decision.reason,
        ok=result.ok,
        error="" if result.error is None else result.error.value,
        output=_segments(result.output),
        because=call.because,
        effects=tuple(map(_describe_effect, event.effects)),
        on_path=on_path,
        is_sink=is_sink,
        offending=tuple(changed),
    )


def _segments_of(value: Argument) -> tuple[Segment, ...]:
    if isinstance(value, Text):
        return _segments(value)
    return (Segment(str(value if isinstance(value, int | None) else value.json), "machine"),)


def _segments(text: Text) -> tuple[Segment, ...]:
    """Divide a text where its author changes, and shorten it to `MAX_SHOWN_CHARS`."""
    found: list[Segment] = []
    at = 0
    for piece in text.pieces:
        if at >= MAX_SHOWN_CHARS:
            break
        size = piece.stop - piece.start
        shown = text.string[at : min(at + size, MAX_SHOWN_CHARS)]
        found.append(_segment(shown, piece.origin))
        at += size
    if len(text.string) > MAX_SHOWN_CHARS:
        left = len(text.string) - MAX_SHOWN_CHARS
        found.append(Segment(f" [{left:,} more characters]", "machine"))
    return tuple(found)


def _segment(shown: str, origin: Origin | Derived) -> Segment:
    if isinstance(origin, Derived):
        authors, encoding = origin.authors, origin.encoding.value
    else:
        authors, encoding = (origin,), ""
    first = next((author for author in authors if author not in (USER, MACHINE)), authors[0])
    return Segment(
        shown,
        "machine" if first == MACHINE else first.source.value,
        secret=any(author.protected for author in authors),
        untrusted=any(not author.trusted for author in authors),
        document=first.document,
        encoding=encoding,
    )


def _describe_effect(effect: Effect) -> str:
    match effect:
        case Posted():
            where = "inside the organization" if effect.internal else "outside"
            return f"posted {len(effect.data.string):,} characters to {effect.url.string}, {where}"
        case Mailed():
            where = "inside the organization" if effect.internal else "outside"
            return f"sent a mail to {effect.recipient}, {where}"
        case Wrote():
            return f"{'overwrote' if effect.before else 'wrote'} {effect.path}"
        case Deleted():
            return f"deleted {effect.path}"


def build_trials(
    trials: Iterable[Trial], offending: Mapping[int, Sequence[str]]
) -> Iterator[TrialRow]:
    """Yield a row for each trial; a failed one has its replay.

    `offending` names the arguments that the guardrail objects to, by the number of the trial.
    """
    variants: Counter[str] = Counter()
    for number, trial in enumerate(trials):
        variants[trial.task.operation] += 1
        tool, reason, args = "", "", {}
        if trial.stop is not None:
            tool, reason = trial.stop.tool, trial.stop.reason
            if trial.stop.index >= 0:
                shown = public(trial.trace.events[trial.stop.index]).args
                args = {name: str(value)[:MAX_SHOWN_CHARS] for name, value in shown.items()}
        yield TrialRow(
            trial.task.operation,
            variants[trial.task.operation],
            trial.task.messages,
            trial.false_positive,
            trial.succeeded,
            trial.missing,
            tool,
            args,
            reason,
            trial.task.kind,
            f"B{number + 1}",
            tuple(trial.trace.answers) if trial.false_positive else (),
            _build_stopped(trial, offending.get(number, ())) if trial.false_positive else (),
        )


def _build_stopped(trial: Trial, offending: Sequence[str]) -> tuple[Step, ...]:
    stopped_at = -1 if trial.stop is None else trial.stop.index
    return tuple(
        structs.replace(step, stopped=True, offending=tuple(offending))
        if step.index == stopped_at
        else step
        for step in build_trace(trial.trace)
    )


def build_archive(archive: Archive, findings: Sequence[Judged]) -> tuple[Place, ...]:
    """Group the archive's cells by depth, documents and effects, and mark those with breaches."""
    cells: Counter[int] = Counter()
    visits: Counter[int] = Counter()
    for entry in archive:
        cells[entry.cell] += 1
        visits[entry.cell] += entry.seen
    breached = {_cell_of(finding.trace) for finding in findings}
    return tuple(
        Place(*explain(cell), cells[cell], visits[cell], cell in breached)
        for cell in sorted({*cells, *breached})
    )


def _cell_of(trace: Trace) -> int:
    footprint = START
    for turn in trace.all_turns():
        footprint, _ = follow(footprint, turn.message, map(public, turn.turn_events))
    return footprint.cell


def count_refused(refused: Iterable[Refused]) -> dict[str, int]:
    return dict(sorted(Counter(one.reason for one in refused).items()))


def count_breaches(cells: Iterable[Cell]) -> dict[str, int]:
    return dict(
        sorted(
            Counter(breach.predicate.value for breach in {cell.breach for cell in cells}).items()
        )
    )


def count_predicates(cells: Iterable[Cell]) -> dict[str, int]:
    return dict(sorted(Counter(cell.predicate.value for cell in set(cells)).items()))


def count_operations(trials: Iterable[Trial]) -> dict[str, int]:
    """Count the false positives of each operation, including operations without any."""
    failed = Counter({trial.task.operation: 0 for trial in trials})
    failed.update(trial.task.operation for trial in trials if trial.false_positive)
    return dict(failed)


def build_formula(ruleset: Ruleset) -> Formula:
    """Return the ruleset's constants that turn counts into scores."""
    attack, defense = ruleset.attack, ruleset.defense
    return Formula(
        attack.weights,
        attack.points_per_cell,
        attack.full_marks,
        attack.volume_full_marks,
        defense.breach_percent,
        defense.false_positive_points,
    )
