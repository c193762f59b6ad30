"""The page of a report: its sections, in order, and their words.

`page` assembles the file and keeps it safe, `report_sections` describes the two matches, and
`breakdown` explains the scores. Every figure on the page is a figure of the report; nothing is
scored again here.
"""

from collections.abc import Iterator
from typing import Final

from tiltyard.contracts.tracks import Track
from tiltyard.reporting.breakdown import defense_sum, final_sum, offense_sum
from tiltyard.reporting.numbers import many, number
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Fact,
    Facts,
    Failures,
    Note,
    Row,
    Section,
    Sum,
    Table,
    render_page,
)
from tiltyard.reporting.report_sections import benign_section, defense_section, offense_section
from tiltyard.reporting.schema import DefensePart, OffensePart, Report
from tiltyard.reporting.words import DEFINITIONS

_FULL: Final = 1000
_WITHHELD: Final = (
    "This is the restricted report of an official run. It contains scores and counts, but no "
    "texts, traces or durations."
)
_ISOLATION: Final = {
    "A": "level A: all layers of the jail",
    "B": "level B: some layers of the jail are missing on this machine",
    "C": "level C: a separate process, but no jail",
}


def render(report: Report) -> str:
    """Return a report as one self-contained HTML file."""
    subtitle = f"{report.ruleset} · {report.setting.budget} budget · run {report.run_id[:12]}"
    return render_page(report.submission.name, tuple(_sections(report)), subtitle)


def _sections(report: Report) -> Iterator[Section]:
    yield Section("summary", "Summary", tuple(_summary(report)))
    if report.failures:
        lead = "A match that ended early has no score. You can run it again."
        yield Section("failures", "Matches that failed", (Failures(report.failures),), lead)
    sums = tuple(_sums(report))
    if sums:
        lead = "Each line uses figures of this report. The constants come from the ruleset."
        yield Section("score", "How the score is calculated", sums, lead)
    if report.offense is not None:
        yield offense_section(report.offense, restricted=report.restricted)
    if report.defense is not None:
        yield defense_section(report.defense, restricted=report.restricted)
        yield benign_section(report.defense, restricted=report.restricted)
    if report.offense is not None or report.defense is not None:
        facts = tuple(Fact(word, meaning) for word, meaning in DEFINITIONS.items())
        yield Section("words", "What the words mean", (Facts(facts),))
    yield Section("run", "The run", tuple(_run(report)))


def _summary(report: Report) -> Iterator[Block]:
    final, failed = report.final_score, {failure.track for failure in report.failures}
    played = sum(part is not None for part in (report.offense, report.defense))
    if final is None:
        card = Card("Final score", "none", note="a match failed", tone="bad")
    else:
        most = _FULL * played
        note = "offense + defense" if played == 2 else "only one track was played"
        card = Card("Final score", number(final), f"{most}", note, share=final / max(1, most))
    yield Cards(
        (card, _offense_card(report.offense, failed), _defense_card(report.defense, failed))
    )
    if report.comparable:
        yield Note("Comparable: a leaderboard can rank this run.", "good")
    else:
        yield Note("Not comparable: no leaderboard ranks it.", "bad", report.not_comparable_because)
    if report.notes:
        yield Note("Please note", "", report.notes)
    if report.restricted:
        yield Note(_WITHHELD, "quiet")


def _offense_card(part: OffensePart | None, failed: set[Track]) -> Card:
    if part is None:
        return _unplayed("Offense", failed="offense" in failed)
    findings = many(part.findings, "finding", "findings")
    note = f"{findings} in {many(part.unique_cells, 'cell', 'cells')}"
    return Card("Offense", number(part.score), f"{_FULL}", note, share=part.score / _FULL)


def _defense_card(part: DefensePart | None, failed: set[Track]) -> Card:
    if part is None:
        return _unplayed("Defense", failed="defense" in failed)
    breaches = many(part.breaches, "breach", "breaches")
    note = f"{breaches}, {number(part.false_positives)} of {part.benign_trials} false positives"
    return Card("Defense", number(part.score), f"{_FULL}", note, share=part.score / _FULL)


def _unplayed(label: str, *, failed: bool) -> Card:
    if failed:
        return Card(label, "failed", note="no score", tone="bad")
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


def _run(report: Report) -> Iterator[Block]:
    setting, submission = report.setting, report.submission
    yield Facts(
        (
            Fact("Run id", report.run_id, code=True),
            Fact("Digest of the results", report.digest, code=True),
            *_digest("Digest, offense", report.offense),
            *_digest("Digest, defense", report.defense),
            Fact("Isolation", _isolation(report)),
            Fact("Engine", f"Tiltyard {report.engine}"),
            Fact("Report schema", f"version {report.schema_version}"),
            *_setting(report),
            *((Fact("Official key", setting.key, code=True),) if setting.key else ()),
            Fact("Submission digest", submission.digest, code=True),
            *(Fact(f"Time, {track}", f"{took:.1f} s") for track, took in report.seconds.items()),
        )
    )
    files = tuple((name, f"{size:,}") for name, size in submission.files.items())
    if files:
        columns = (Column("File", "code"), Column("Bytes", "number"))
        yield Table(f"Submitted for {' and '.join(submission.tracks)}", columns, files)


def _isolation(report: Report) -> str:
    if report.isolation.unsafe:
        return "switched off with --unsafe-no-sandbox"
    return _ISOLATION.get(report.isolation.level, report.isolation.level)


def _setting(report: Report) -> Iterator[Fact]:
    setting, hidden = report.setting, "hidden by the organizer"
    yield Fact("Ruleset", setting.ruleset)
    yield Fact("Ruleset digest", setting.ruleset_digest, code=True)
    yield Fact("Budget", setting.budget)
    yield Fact("Seeds", ", ".join(map(str, setting.seeds)) or hidden)
    scenarios = "\n".join(setting.scenarios)
    yield Fact("Scenarios", scenarios or hidden, code=bool(scenarios))
    yield Fact("Agent", setting.agent)
    yield from (Fact(f"Package {name}", version) for name, version in setting.packages.items())
    yield Fact("Guardrail in offense", setting.offense_opponent)
    yield Fact("Attack in defense", setting.defense_opponent)


def _digest(term: str, part: OffensePart | DefensePart | None) -> tuple[Fact, ...]:
    return (Fact(term, part.digest, code=True),) if part is not None and part.digest else ()
