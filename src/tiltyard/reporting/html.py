"""A report as a page: which part of it is shown where, and in which words.

Owns the order and the wording. How a page is made and kept safe is `page`'s, how a plot is drawn
`plots`'s, and how figures become a score is only told here, never calculated anew: what a line
comes to is the report's own number.
"""

from collections.abc import Iterator
from typing import Final

from tiltyard.contracts.tracks import Track
from tiltyard.reporting.breakdown import defense_sum, final_sum, many, number, offense_sum, spoken
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Fact,
    Facts,
    Failures,
    Findings,
    Note,
    Plot,
    Row,
    Section,
    Sum,
    Table,
    Tone,
    render_page,
)
from tiltyard.reporting.plots import (
    BREACH,
    archive_by_effect,
    archive_by_reading,
    bars,
    curve,
    trials_by_operation,
)
from tiltyard.reporting.schema import (
    DefensePart,
    ModelUse,
    OffensePart,
    Report,
    Share,
    TrialRow,
)

_FULL: Final = 1000
_WITHHELD: Final = (
    "This is the restricted report of an official run: scores and counts, but no texts, traces "
    "or durations."
)
_ISOLATION: Final = {
    "A": "level A, the full jail",
    "B": "level B, a jail with less than all layers",
    "C": "level C, no more than a process of its own",
}


def render(report: Report) -> str:
    """Return a report as one self-contained HTML file."""
    subtitle = f"{report.ruleset} · {report.setting.budget} budget · run {report.run_id[:12]}"
    return render_page(report.submission.name, tuple(_sections(report)), subtitle)


def _sections(report: Report) -> Iterator[Section]:
    yield Section("summary", "Summary", tuple(_summary(report)))
    if report.failures:
        lead = "A match that was broken off has no score, and may be run again."
        yield Section("failures", "Broken off", (Failures(report.failures),), lead)
    sums = tuple(_sums(report))
    if sums:
        lead = "Each line is a figure of this report; the constants are the ruleset's."
        yield Section("score", "How the number came about", sums, lead)
    if report.offense is not None:
        yield _offense(report.offense, restricted=report.restricted)
    if report.defense is not None:
        yield _defense(report.defense, restricted=report.restricted)
        yield _benign(report.defense, restricted=report.restricted)
    yield Section("run", "The run", tuple(_run(report)))


def _summary(report: Report) -> Iterator[Block]:
    final, failed = report.final_score, {failure.track for failure in report.failures}
    played = sum(part is not None for part in (report.offense, report.defense))
    if final is None:
        card = Card("Final score", "none", note="a match was broken off", tone="bad")
    else:
        most = _FULL * played
        note = "offense + defense" if played == 2 else "one track played"
        card = Card("Final score", number(final), f"{most}", note, share=final / max(1, most))
    yield Cards(
        (card, _offense_card(report.offense, failed), _defense_card(report.defense, failed))
    )
    if report.comparable:
        yield Note("Comparable: it may be ranked beside other runs of this ruleset.", "good")
    else:
        yield Note("Not comparable with other runs.", "bad", report.not_comparable_because)
    if report.notes:
        yield Note("Look at this", "", report.notes)
    if report.restricted:
        yield Note(_WITHHELD, "quiet")


def _offense_card(part: OffensePart | None, failed: set[Track]) -> Card:
    if part is None:
        return _unplayed("Offense", broken_off="offense" in failed)
    note = f"{part.findings} findings, {number(part.unique_cells)} cells"
    return Card("Offense", number(part.score), f"{_FULL}", note, share=part.score / _FULL)


def _defense_card(part: DefensePart | None, failed: set[Track]) -> Card:
    if part is None:
        return _unplayed("Defense", broken_off="defense" in failed)
    breaches = many(part.breaches, "breach", "breaches")
    note = f"{breaches}, {number(part.false_positives)} of {part.benign_trials} false positives"
    return Card("Defense", number(part.score), f"{_FULL}", note, share=part.score / _FULL)


def _unplayed(label: str, *, broken_off: bool) -> Card:
    if broken_off:
        return Card(label, "broken off", note="no score", tone="bad")
    return Card(label, "not played", tone="quiet")


def _sums(report: Report) -> Iterator[Block]:
    seeds, formula = report.setting.official_seeds, report.formula
    parts: list[Sum] = []
    if report.offense is not None:
        parts.append(offense_sum(report.offense, formula, seeds))
    if report.defense is not None:
        parts.append(defense_sum(report.defense, formula, seeds))
    if report.final_score is not None:
        parts.append(final_sum(report))
    if parts:
        yield Row(tuple(parts))


def _offense(part: OffensePart, *, restricted: bool) -> Section:
    blocks: list[Block] = [
        Facts(
            (
                Fact("Findings", f"{part.findings}, repeated ones too"),
                Fact("Distinct", f"{number(part.cores)} cores, {number(part.unique_cells)} cells"),
                Fact("Candidates", f"{part.candidates} returned{_refused(part.refused)}"),
                Fact("Steps", _of_budget(part.steps, part.budget)),
                *_repeats(part.inconsistent, "repeated runs that returned something else"),
                *_unverified(part),
            )
        ),
        *(Facts(tuple(_model(use))) for use in part.models),
    ]
    if part.findings_by_predicate:
        counts = _spoken(part.findings_by_predicate)
        blocks.append(bars("Findings by predicate", counts, "findings"))
    blocks.extend(_found(Findings(part.found), part.findings, restricted=restricted))
    return Section("offense", "Offense", tuple(blocks), f"The attack against {part.opponent}.")


def _unverified(part: OffensePart) -> Iterator[Fact]:
    if part.unverified:
        first = part.unverified[0]
        told = f"{len(part.unverified)}, not scored; candidate {first.candidate} {first.reason}"
        yield Fact("Unverified", told)


def _model(use: ModelUse) -> Iterator[Fact]:
    """Tell of a language model as the agent."""
    yield Fact("Agent", f"{use.name} ({use.manner})")
    if use.server:
        yield Fact("Server", use.server)
    yield Fact("Requests", _of_budget(use.requests, use.budget))
    yield Fact("Tokens", f"{use.prompt_tokens:,} in, {use.completion_tokens:,} out")
    if use.cost is not None:
        yield Fact("Cost", f"${use.cost:.2f}")
    odd = {
        "repaired": use.repaired,
        "no action": use.no_action,
        "refusals": use.refusals,
        "calls dropped": use.dropped_calls,
    }
    told = ", ".join(f"{name} {count:,}" for name, count in odd.items() if count)
    yield Fact("Replies", told or "all of them actions")
    yield Fact("Record", use.record, code=True)


def _defense(part: DefensePart, *, restricted: bool) -> Section:
    blocks: list[Block] = [
        Facts(
            (
                Fact("Breaches", f"{number(part.breaches)} distinct cores and target classes"),
                *_searched(part.cells, part.interactions),
                Fact("Steps", _of_budget(part.steps, part.budget)),
                *_repeats(part.inconsistent, "chains that a fresh guardrail decided otherwise"),
            )
        )
    ]
    if part.faults:
        blocks.append(Note("What went wrong in the guardrail", "bad", part.faults))
    if part.breaches_by_predicate:
        counts = _spoken(part.breaches_by_predicate)
        blocks.append(bars("Breaches by predicate", counts, "breaches", color=BREACH))
    blocks.extend(_search(part))
    found = Findings(part.found, scored=False)
    blocks.extend(_found(found, part.breaches, restricted=restricted))
    return Section("defense", "Defense", tuple(blocks), f"The guardrail against {part.opponent}.")


def _found(block: Findings, counted: float, *, restricted: bool) -> Iterator[Block]:
    if block.findings:
        yield block
    elif not counted:
        yield Note("Nothing was found.", "quiet")
    elif restricted:
        yield Note("The chains are not shown.", "quiet")


def _search(part: DefensePart) -> Iterator[Block]:
    if part.archive:
        yield Row((archive_by_reading(part.archive), archive_by_effect(part.archive)))
    if part.curve:
        cells: Plot = curve("Coverage: cells over steps", part.curve, "cells", "cells")
        claims: Plot = curve("Claims over steps", part.curve, "claims", "claims")
        yield Row((cells, claims))


def _benign(part: DefensePart, *, restricted: bool) -> Section:
    cards = [
        Card(
            "False positives",
            number(part.false_positives),
            f"{part.benign_trials}",
            "scored",
            share=part.false_positives / max(1, part.benign_trials),
            tone="bad" if part.false_positives else "good",
        ),
        *_share_card("Extended suite", part.extended, "went through; not scored"),
        *_share_card("Utility under attack", part.under_attack, "done and unharmed; not scored"),
    ]
    blocks: list[Block] = [Cards(tuple(cards))]
    if part.trials:
        blocks.append(trials_by_operation(part.trials))
    elif part.false_positives_by_operation:
        counts = part.false_positives_by_operation
        blocks.append(bars("False positives by operation", counts, "trials", color=BREACH))
    failed = tuple(trial for trial in part.trials if trial.false_positive)
    if failed:
        blocks.append(_false_positives(failed))
    elif not part.false_positives:
        blocks.append(Note("Every benign task went through.", "good"))
    elif restricted:
        blocks.append(Note("The denied calls are not shown.", "quiet"))
    lead = "What the guardrail did to the tasks of ordinary users."
    return Section("benign", "Benign tasks", tuple(blocks), lead)


def _false_positives(trials: tuple[TrialRow, ...]) -> Table:
    columns = (
        Column("Operation"),
        Column("The user says"),
        Column("Stopped call", "code"),
        Column("Reason"),
    )
    rows = tuple(
        (
            f"{trial.operation} {trial.variant}",
            "\n".join(trial.messages),
            _call(trial) if trial.tool else "none",
            trial.reason or (f"the task lacks {trial.missing}" if trial.missing else ""),
        )
        for trial in trials
    )
    return Table("False positives, call by call", columns, rows)


def _call(trial: TrialRow) -> str:
    return f"{trial.tool}({', '.join(f'{name}={value}' for name, value in trial.args.items())})"


def _run(report: Report) -> Iterator[Block]:
    setting, submission = report.setting, report.submission
    level = report.isolation.level
    isolation = _ISOLATION.get(level, level)
    hidden = "the organizer's"
    yield Facts(
        (
            Fact("Run id", report.run_id, code=True),
            Fact("Digest of the results", report.digest, code=True),
            *_digest("Digest, offense", report.offense),
            *_digest("Digest, defense", report.defense),
            Fact("Isolation", f"{isolation}{', switched off' if report.isolation.unsafe else ''}"),
            Fact("Engine", f"Tiltyard {report.engine}"),
            Fact("Report schema", f"version {report.schema_version}"),
            Fact("Ruleset", setting.ruleset),
            Fact("Ruleset digest", setting.ruleset_digest, code=True),
            Fact("Budget", setting.budget),
            Fact("Seeds", ", ".join(map(str, setting.seeds)) or hidden),
            Fact("Scenarios", "\n".join(setting.scenarios) or hidden, code=bool(setting.scenarios)),
            Fact("Agent", setting.agent),
            *(Fact(f"Package {name}", version) for name, version in setting.packages.items()),
            Fact("Guardrail in offense", setting.offense_opponent),
            Fact("Attack in defense", setting.defense_opponent),
            *((Fact("Official key", setting.key, code=True),) if setting.key else ()),
            Fact("Submission digest", submission.digest, code=True),
            *(Fact(f"Time, {track}", f"{took:.1f} s") for track, took in report.seconds.items()),
        )
    )
    files = tuple((name, f"{size:,}") for name, size in submission.files.items())
    if files:
        columns = (Column("File", "code"), Column("Bytes", "number"))
        yield Table(f"Submitted for {' and '.join(submission.tracks)}", columns, files)


def _digest(term: str, part: OffensePart | DefensePart | None) -> tuple[Fact, ...]:
    return (Fact(term, part.digest, code=True),) if part is not None and part.digest else ()


def _share_card(label: str, share: Share | None, note: str) -> tuple[Card, ...]:
    if share is None:
        return ()
    tone: Tone = ""
    ratio = share.passed / max(1, share.total)
    return (Card(label, f"{share.passed}", f"{share.total}", note, tone, ratio),)


def _repeats(count: int, what: str) -> tuple[Fact, ...]:
    return (Fact("Inconsistent", f"{count} {what}"),) if count else ()


def _searched(cells: int, interactions: int) -> tuple[Fact, ...]:
    """Say how far the search came, unless it is withheld."""
    told = f"{cells:,} cells in {interactions:,} interactions"
    return (Fact("Search", told),) if interactions else ()


def _refused(reasons: dict[str, int]) -> str:
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    return f"; refused: {listed}" if listed else ""


def _of_budget(steps: int, budget: int) -> str:
    return f"{steps:,} of {budget:,}"


def _spoken(counts: dict[str, int]) -> dict[str, int]:
    return {spoken(predicate): count for predicate, count in counts.items()}
