"""The scores of a run as tables, for `tiltyard evaluate`."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from tiltyard.cli.tables import print_line
from tiltyard.cli.terminal import open_console, page_width, safe, safe_lines
from tiltyard.reporting.numbers import many
from tiltyard.reporting.schema import DefensePart, ModelUse, OffensePart, Report
from tiltyard.runs.evaluate import Finished
from tiltyard.runs.store import PAGE

_GLOSSARY: Final = {
    "core": "one kind of hole: a predicate, a source and a sink",
    "cell": "a core with its target and its route",
    "raw": "points for all cores and cells, before they are scaled to the score",
    "breach": "a core with its target that got past your guardrail",
}


def print_scores(first: Finished, others: list[Finished]) -> None:
    """Print the scores of a run, what to know about them, and where the report is."""
    report = first.report
    console = open_console()
    if first.from_store:
        console.print(Text("From the store; --fresh plays it again.", "dim"))
    console.print(_scores(report, page_width()))
    for line in _remarks(report):
        console.print(line)
    if others:
        console.print(_spread([first, *others]))
    if report.offense is not None or report.defense is not None:
        for word, meaning in _GLOSSARY.items():
            console.print(Text(f"{word + ':':8}{meaning}", "dim"))
        print_line(console, "docs/glossary.md explains these and other words.")
    print_line(console, f"report: {first.directory / PAGE}")


def _scores(report: Report, width: int) -> Table:
    table = Table(title=Text(f"{safe(report.submission.name)}, run {report.run_id}"), width=width)
    for name in ("track", "score", "details"):
        table.add_column(name, justify="right" if name == "score" else "left")
    if report.offense is not None:
        lines = "\n".join(_offense_lines(report.offense))
        table.add_row("offense", f"{report.offense.score:.2f}", Text(lines))
    if report.defense is not None:
        lines = "\n".join(_defense_lines(report.defense))
        table.add_row("defense", f"{report.defense.score:.2f}", Text(lines))
    table.add_section()
    final = "none" if report.final_score is None else f"{report.final_score:.2f}"
    level = f"ruleset {safe(report.ruleset)}, {report.setting.budget} budget, isolation level "
    table.add_row(
        Text("final", "bold"), Text(final, "bold"), Text(f"{level}{report.isolation.level}")
    )
    return table


def _offense_lines(part: OffensePart) -> Iterator[str]:
    cores, cells = many(part.cores, "core", "cores"), many(part.unique_cells, "cell", "cells")
    yield f"raw {part.raw:g}: {cores}, {cells}, against {safe(part.opponent)}"
    yield f"cells: {_counts(part.cells_by_predicate)}"
    if part.findings_by_predicate:
        yield f"findings with repeats: {_counts(part.findings_by_predicate)}"
    yield from map(_model_line, part.models)


def _defense_lines(part: DefensePart) -> Iterator[str]:
    breaches = many(part.breaches, "breach", "breaches")
    yield f"{breaches}: {_counts(part.breaches_by_predicate)}" if part.breaches else breaches
    stopped = {name: n for name, n in part.false_positives_by_operation.items() if n}
    failed = f"{part.false_positives:g} of {part.benign_trials} benign trials failed"
    yield f"{failed}: {_counts(stopped)}" if stopped else failed


def _counts(counts: dict[str, float] | dict[str, int]) -> str:
    return ", ".join(f"{safe(name)} {count:g}" for name, count in counts.items()) or "none"


def _model_line(use: ModelUse) -> str:
    tokens = use.prompt_tokens + use.completion_tokens
    cost = "" if use.cost is None else f", ${use.cost:.2f}"
    return (
        f"agent {safe(use.name)} ({use.manner}): {use.requests:,} of {use.budget:,} requests, "
        f"{tokens:,} tokens{cost}"
    )


def _remarks(report: Report) -> Iterator[Text]:
    """Yield what a reader must know beside the scores."""
    for failure in report.failures:
        yield Text(f"{failure.track} failed ({failure.kind}): {safe(failure.message)}", "bold red")
        during = f"during: {failure.doing}" if failure.phase else ""
        details = during, failure.traceback, failure.output
        yield from (Text(safe_lines(detail), "dim") for detail in details if detail)
    yield from (Text(safe_lines(note)) for note in report.notes)
    if not report.comparable:
        reasons = "; ".join(map(safe, report.not_comparable_because))
        yield Text(f"not comparable: {reasons}")


def _spread(runs: list[Finished]) -> Table:
    table = Table(title="Scores by seed", title_justify="left")
    for name in ("seed", "offense", "defense", "final"):
        table.add_column(name, justify="right")
    rows = [
        (
            ", ".join(map(str, one.report.setting.seeds)),
            one.report.offense and one.report.offense.score,
            one.report.defense and one.report.defense.score,
            one.report.final_score,
        )
        for one in runs
    ]
    for seed, *scores in rows:
        table.add_row(seed, *("" if score is None else f"{score:.2f}" for score in scores))
    table.add_section()
    for name, pick in (("lowest", min), ("highest", max)):
        columns = zip(*(scores for _, *scores in rows), strict=True)
        known = [[score for score in column if score is not None] for column in columns]
        table.add_row(name, *(f"{pick(column):.2f}" if column else "" for column in known))
    return table
