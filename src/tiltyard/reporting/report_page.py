"""The page of a report: its sections, in order, and their words.

`page` assembles the file and keeps it safe, `report_sections` describes the two matches, and
`breakdown` explains the scores. Every figure on the page is a figure of the report; nothing is
scored again here.
"""

from collections.abc import Iterator
from typing import Final

from tiltyard.contracts.tracks import PART_OF, Track
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.reporting.arena_section import arena_card, arena_section, arena_sum
from tiltyard.reporting.breakdown import defense_sum, final_sum, offense_sum
from tiltyard.reporting.numbers import many, moment, number
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Fact,
    Facts,
    Failures,
    Note,
    Output,
    Row,
    Section,
    Sum,
    Table,
    render_page,
)
from tiltyard.reporting.report_sections import benign_section, defense_section, offense_section
from tiltyard.reporting.schema import DefensePart, OffensePart, Report
from tiltyard.reporting.words import ARENA_DEFINITIONS, DEFINITIONS

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
    facts = [report.ruleset, f"{report.setting.budget} budget", f"run {report.run_id[:12]}"]
    facts += [moment(report.started)] if report.started else []
    return render_page(report.submission.name, tuple(_sections(report)), " · ".join(facts))


def _sections(report: Report) -> Iterator[Section]:
    yield Section("summary", "Summary", tuple(_summary(report)))
    if report.failures:
        lead = "A match that ended early has no score. You can run it again."
        failed = (Failures(report.failures),)
        yield Section("failures", "Matches that failed", failed, lead, short="Failed")
    sums = tuple(_sums(report))
    if sums:
        lead = "Each line uses figures of this report. The constants come from the ruleset."
        yield Section("score", "How the score is calculated", sums, lead, short="Score")
    worlds = report.setting.official_seeds
    if report.offense is not None:
        yield offense_section(report.offense, restricted=report.restricted, worlds=worlds)
    if report.defense is not None:
        yield defense_section(report.defense, restricted=report.restricted, worlds=worlds)
        yield benign_section(report.defense, restricted=report.restricted)
    if report.arena is not None:
        yield arena_section(report.arena)
    if report.output:
        lead = "Tiltyard keeps this in practice runs only, shortened, and each text once."
        blocks = tuple(_output(report))
        yield Section("output", "What the submission printed", blocks, lead, short="Output")
    if report.offense or report.defense or report.arena:
        words = DEFINITIONS if report.arena is None else ARENA_DEFINITIONS
        facts = tuple(Fact(word, meaning) for word, meaning in words.items())
        yield Section("words", "What the words mean", (Facts(facts),), short="Words")
    yield Section("run", "The run", tuple(_run(report)))


def _summary(report: Report) -> Iterator[Block]:
    final, failed = report.final_score, {failure.track for failure in report.failures}
    played = len(_parts(report))
    if final is None:
        card = Card("Final score", "none", note="a match failed", tone="bad")
    else:
        most = _FULL * played
        note = "offense + defense" if played == 2 else "only one track was played"
        card = Card("Final score", number(final), f"{most}", note, share=final / max(1, most))
    offense = _offense_card(report.offense, failed, restricted=report.restricted)
    if report.arena is None:
        defense = _defense_card(report.defense, failed)
    else:
        defense = arena_card(report.arena)
    yield Cards((card, offense, defense))
    yield _ranking(report)
    if report.notes:
        yield Note("Please note", "", report.notes)
    if report.restricted:
        yield Note(_WITHHELD, "quiet")


def _ranking(report: Report) -> Note:
    if report.comparable:
        return Note("Comparable: a leaderboard can rank this run.", "good")
    reasons = report.not_comparable_because
    if report.failures or report.setting.key or any(map(_is_inconsistent, _parts(report))):
        return Note("Not comparable: no leaderboard ranks it.", "bad", reasons)
    return Note("Practice run: no leaderboard ranks it.", "", reasons)


def _parts(report: Report) -> list[OffensePart | DefensePart | ArenaPart]:
    parts = (report.offense, report.defense, report.arena)
    return [part for part in parts if part is not None]


def _is_inconsistent(part: OffensePart | DefensePart | ArenaPart) -> bool:
    return part.inconsistent > 0


def _offense_card(part: OffensePart | None, failed: set[Track], *, restricted: bool) -> Card:
    if part is None:
        return _unplayed("Offense", failed="offense" in failed)
    cells = many(part.unique_cells, "cell", "cells")
    note = f"{many(part.findings, 'finding', 'findings')} in {cells}"
    if restricted:  # It has no findings to count.
        note = f"{many(part.cores, 'core', 'cores')}, {cells}"
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
    if report.arena is not None:
        parts.append(arena_sum(report.arena))
    elif report.final_score is not None:
        parts.append(final_sum(report))
    if parts:
        yield Row(tuple(parts))


def _output(report: Report) -> Iterator[Output]:
    for track, text in report.output.items():
        yield Output(f"The {PART_OF[track]}", text)


def _run(report: Report) -> Iterator[Block]:
    setting, submission = report.setting, report.submission
    yield Facts(
        (
            Fact("Run id", report.run_id, code=True),
            *((Fact("Started", moment(report.started)),) if report.started else ()),
            Fact("Digest of the results", report.digest, code=True),
            *_digest("Digest, offense", report.offense),
            *_digest("Digest, defense", report.defense or report.arena),
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
    if report.arena is None:
        yield Fact("Scenarios", scenarios or hidden, code=bool(scenarios))
    yield Fact("Agent", setting.agent)
    yield from (Fact(f"Package {name}", version) for name, version in setting.packages.items())
    if "offense" in report.submission.tracks:
        yield Fact("Guardrail in offense", setting.offense_opponent)
    if "defense" in report.submission.tracks:
        yield Fact("Attack in defense", setting.defense_opponent)


def _digest(term: str, part: OffensePart | DefensePart | ArenaPart | None) -> tuple[Fact, ...]:
    return (Fact(term, part.digest, code=True),) if part is not None and part.digest else ()
