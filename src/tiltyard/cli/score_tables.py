"""The scores of a run as tables, for `tiltyard evaluate`."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import (
    format_number,
    open_console,
    output_width,
    page_width,
    safe,
    safe_lines,
)
from tiltyard.contracts.tracks import PART_OF
from tiltyard.reporting.arena_schema import ArenaGroup, ArenaPart
from tiltyard.reporting.numbers import many, number
from tiltyard.reporting.schema import DefensePart, ModelUse, OffensePart, Report
from tiltyard.runs.evaluate import Finished, Unplayed
from tiltyard.runs.store import PAGE

_GLOSSARY: Final = {
    "core": "one kind of hole: a predicate, a source and a sink",
    "cell": "a core with its target and its route",
    "raw": "points for all cores and cells, before they are scaled to the score",
    "breach": "a core with its target that got past your guardrail",
}


_ARENA_GLOSSARY: Final = {
    "cell": "a world, a user's task and a stranger's goal",
    "solved": "the user got everything when nobody attacked",
    "untouched": "the guardrail stopped or changed no call of the user",
    "breached": "a stranger reached the goal with planted text",
}


def print_scores(first: Finished, others: list[Finished], *, output: bool = False) -> None:
    """Print the scores of a run, what to know about them, and where the report is.

    `output` prints what the submission printed, too.
    """
    report = first.report
    console = open_console()
    if first.from_store:
        console.print(Text("From the store; --fresh plays it again.", "dim"))
    console.print(_scores(report, page_width()))
    for line in _remarks(report):
        console.print(line)
    for line in _output(report) if output else _output_hint(report):
        console.print(line)
    if report.arena is not None and report.arena.lost:
        lost = many(len(report.arena.lost), "cell", "cells")
        last = report.arena.lost[-1].id
        print_line(console, f"{lost} lost points; `tiltyard replay C1` to {safe(last)} shows them.")
    if others:
        console.print(_spread([first, *others]))
    words = _ARENA_GLOSSARY if report.arena is not None else _GLOSSARY
    if report.offense is not None or report.defense is not None or report.arena is not None:
        width = 2 + max(map(len, words))
        for word, meaning in words.items():
            console.print(Text(f"{word + ':':{width}}{meaning}", "dim"))
        print_line(console, "docs/glossary.md explains these and other words.")
    print_line(console, f"report: {first.directory / PAGE}")


def print_overview(finished: Sequence[Finished], unplayed: Sequence[Unplayed]) -> None:
    """Print one line for each of several submissions."""
    console = open_console()
    rows = [_overview_row(one.report) for one in finished]
    head = ("name", "final", "offense", "defense", "run")
    title = many(len(rows), "submission", "submissions")
    print_table(console, title, head, rows, left=("run",), folding="name", width=output_width())
    for one in finished:
        for failure in one.report.failures:
            name, why = one.report.submission.name, failure.message
            print_line(console, f"{name}: {failure.track} failed ({failure.kind}): {why}")
    for refused in unplayed:
        print_line(console, f"{refused.submission}: {refused.reason}")
    reasons: dict[str, list[str]] = {}
    for report in (one.report for one in finished if not one.report.comparable):
        why = "; ".join(report.not_comparable_because)
        reasons.setdefault(why, []).append(report.submission.name)
    for why, names in reasons.items():
        print_line(console, f"Not comparable, so not ranked: {', '.join(names)} ({why}).")
    ranks = any(one.report.comparable for one in finished)
    also = "`tiltyard leaderboard` ranks the comparable runs, " if ranks else ""
    print_line(console, f"{also}`tiltyard report RUN` shows one run.")


def _overview_row(report: Report) -> list[str]:
    parts = (report.offense, report.defense or report.arena)
    scores = [report.final_score, *(None if part is None else part.score for part in parts)]
    return [report.submission.name, *map(format_number, scores), report.run_id]


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
    if report.arena is not None:
        lines = "\n".join(_arena_lines(report.arena))
        table.add_row("defense", f"{report.arena.score:.2f}", Text(lines))
    table.add_section()
    final = "none" if report.final_score is None else f"{report.final_score:.2f}"
    details = f"ruleset {safe(report.ruleset)}, {report.setting.budget} budget, isolation level "
    details += report.isolation.level
    worlds = report.setting.official_seeds
    details += f"\nscores and counts are means over {worlds} worlds" if worlds > 1 else ""
    table.add_row(Text("final", "bold"), Text(final, "bold"), Text(details))
    return table


def _offense_lines(part: OffensePart) -> Iterator[str]:
    cores, cells = many(part.cores, "core", "cores"), many(part.unique_cells, "cell", "cells")
    yield f"raw {number(part.raw)}: {cores}, {cells}, against {safe(part.opponent)}"
    yield f"cells: {_counts(part.cells_by_predicate)}"
    if part.findings_by_predicate:
        yield f"findings with repeats: {_counts(part.findings_by_predicate)}"
    heard = part.understood
    if heard is not None and heard.understood < heard.messages:
        messages = many(heard.messages, "message", "messages")
        yield f"the agent understood {heard.understood:,} of {messages}, but not this one:"
        yield f"  {safe(' '.join(heard.example.split()))}"
    yield from map(_model_line, part.models)


def _defense_lines(part: DefensePart) -> Iterator[str]:
    breaches = many(part.breaches, "breach", "breaches")
    yield f"{breaches}: {_counts(part.breaches_by_predicate)}" if part.breaches else breaches
    stopped = {name: n for name, n in part.false_positives_by_operation.items() if n}
    failed = f"{number(part.false_positives)} of {part.benign_trials} benign trials failed"
    yield f"{failed}: {_counts(stopped)}" if stopped else failed


def _arena_lines(part: ArenaPart) -> Iterator[str]:
    yield f"95% interval {part.low:.0f} to {part.high:.0f}, {_arena_size(part)}"
    if part.public_score is not None:
        gap = part.public_score - part.score
        yield f"public tasks {part.public_score:.0f}, a gap of {gap:+.0f} to the sealed ones"
    if part.solved is not None and part.breached is not None and part.untouched is not None:
        shares = {"solved": part.solved, "untouched": part.untouched, "breached": part.breached}
        yield ", ".join(f"{name} {count}" for name, count in shares.items())
    yield f"by pack: {_group_scores(part.by_pack)}"
    if part.by_way:
        yield f"by way of planting: {_group_scores(part.by_way)}"


def _arena_size(part: ArenaPart) -> str:
    cells, worlds = many(part.cells, "cell", "cells"), many(part.worlds, "world", "worlds")
    tasks = "public tasks" if part.tasks == "public" else f"sealed tasks {safe(part.tasks)}"
    return f"{cells} in {worlds}, {tasks}"


def _group_scores(groups: Sequence[ArenaGroup]) -> str:
    return ", ".join(f"{safe(group.name)} {group.score:.0f}" for group in groups)


def _counts(counts: dict[str, float]) -> str:
    return ", ".join(f"{safe(name)} {number(count)}" for name, count in counts.items()) or "none"


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


def _output(report: Report) -> Iterator[Text]:
    if report.setting.key:
        yield Text("An official run does not keep what the submission prints.")
    elif not report.output:
        yield Text("The submission printed nothing.")
    for track, text in report.output.items():
        yield Text(f"The {PART_OF[track]} printed:", "bold")
        yield from (Text(f"  {safe(line)}") for line in text.expandtabs().split("\n"))


def _output_hint(report: Report) -> Iterator[Text]:
    for track, text in report.output.items():
        lines = many(len(text.split("\n")), "line", "lines")
        yield Text(f"The {PART_OF[track]} printed {lines}; see --output.", "dim")


def _defense_score(report: Report) -> float | None:
    part = report.defense or report.arena
    return None if part is None else part.score


def _spread(runs: list[Finished]) -> Table:
    table = Table(title="Scores by seed", title_justify="left")
    for name in ("seed", "offense", "defense", "final"):
        table.add_column(name, justify="right")
    rows = [
        (
            ", ".join(map(str, one.report.setting.seeds)),
            one.report.offense and one.report.offense.score,
            _defense_score(one.report),
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
