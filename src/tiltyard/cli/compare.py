"""`tiltyard compare`: print what changed between two runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    RunArgument,
    StoreOption,
    UnsafeOption,
)
from tiltyard.cli.tables import Labelled
from tiltyard.cli.terminal import (
    format_number,
    open_console,
    print_json,
    render_segments,
    safe,
    spinner,
)
from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.reporting.comparison_schema import (
    Change,
    ComparedCell,
    ComparedFinding,
    Comparison,
    Divergence,
)
from tiltyard.reporting.finding_schema import Step
from tiltyard.reporting.schema import TrialRow
from tiltyard.reporting.words import LOSSES, describe_trial
from tiltyard.runs.store import Store, find_report
from tiltyard.studies.comparison import compare, open_run

_SHOWN_CHARS: Final = 60
"""How many characters of an argument's value to print."""


def run(
    *,
    before: RunArgument = "",
    after: RunArgument = "",
    as_json: JsonOption = False,
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Print what changed from one run to another.

    With one run, compare it with the newest run; without any, compare the two newest runs.

    Compares scores, findings and false positives. For each finding that only one run has, the
    command plays its messages against the guardrail of the other run, in the sandbox, and prints
    the first call at which the two traces differ: usually a decision that changed. For two runs of
    the same arena, it lists the cells that one run won, or that both lost for different reasons.

    Example: tiltyard compare

    Example: tiltyard compare 36c0 91ab
    """
    with exit_on_error(), spinner("playing findings against the other guardrail"):
        paths = _find_both(before, after, Store(store))
        comparison = compare(*map(open_run, paths), unsafe=unsafe)
    if as_json:
        print_json(comparison)
        return
    console = open_console()
    _print_numbers(console, comparison)
    for track in TRACKS:
        _print_findings(console, comparison, track)
    _print_trials(console, "False positives gained", comparison.false_positives_gained)
    _print_trials(console, "False positives lost", comparison.false_positives_lost)
    _print_cells(console, comparison.cells)
    for note in comparison.notes:
        console.print(Text(f"\nnote: {safe(note)}", "yellow"))


def _find_both(before: str, after: str, store: Store) -> tuple[Path, Path]:
    if not before:
        newest, last = store.newest(2)
        return last, newest
    return find_report(before, store), (find_report(after, store) if after else store.newest(1)[0])


def _print_numbers(console: Console, comparison: Comparison) -> None:
    if comparison.settings:
        console.print(
            Text("The settings differ, so the scores are harder to compare:", "bold yellow")
        )
        for change in comparison.settings:
            before, after = format_number(change.before), format_number(change.after)
            console.print(Text(f"  {change.name}: {before} -> {after}"))
        console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in (comparison.before, comparison.after, "change"):
        table.add_column(Text(safe(name)), justify="right")
    for change in comparison.numbers:
        cells = [format_number(change.before), format_number(change.after), _difference(change)]
        table.add_row(Text(safe(change.name)), *map(Text, cells))
    console.print(table)


def _difference(change: Change) -> str:
    if isinstance(change.before, str | None) or isinstance(change.after, str | None):
        return ""
    less = change.after - change.before
    return f"+{format_number(less)}" if less > 0 else format_number(less) if less else "="


def _print_findings(console: Console, comparison: Comparison, track: Track) -> None:
    for fate in ("gained", "lost", "kept"):
        found = comparison.having(track, fate)
        if fate == "kept":
            found = [one for one in found if one.divergence is not None]
        if not found:
            continue
        title = "kept, with different traces" if fate == "kept" else fate
        console.print(Text(f"\n{track.capitalize()}, findings {title}: {len(found)}", "bold"))
        if any(one.replayed and one.divergence is None for one in found):
            console.print(Text(f"  (*) {_UNCHANGED[track, fate]}"))
        together: dict[tuple[str, ...], list[ComparedFinding]] = {}
        for one in found:
            together.setdefault(one.chain, []).append(one)
        for same in together.values():
            _print_chain(console, same)


_UNCHANGED: Final = {
    ("defense", "lost"): "it still gets through, but the search did not find it",
    ("defense", "gained"): "it got through before, but the search did not find it",
    ("offense", "lost"): "it still gets through, but the attack did not find it",
    ("offense", "gained"): "it got through before, but the attack did not find it",
}


def _print_chain(console: Console, same: Sequence[ComparedFinding]) -> None:
    """Print the findings of one chain of messages, and where the traces differ."""
    for one in same:
        predicate, source, sink, target, route = map(safe, one.cell)
        sign = {"gained": "+", "lost": "-"}.get(one.fate, "=")
        ids = " -> ".join(safe(name) for name in (one.before_id, one.after_id) if name)
        mark = " (*)" if one.replayed and one.divergence is None else ""
        cell = f"{predicate}  {source} to {sink}, {target}, {route}"
        console.print(Text(f"{sign} {ids}  {cell}{mark}"))
    for message in same[0].chain:
        _print_labelled(console, "user: ", message)
    if same[0].divergence is not None:
        for line in _difference_lines(same[0].divergence):
            console.print(Labelled(Text("      "), line))


def _difference_lines(divergence: Divergence) -> Iterator[Text]:
    step = divergence.before or divergence.after
    assert step is not None
    where = f"the traces differ at call {step.index} of message {step.turn + 1}"
    if divergence.what == "decision":
        yield Text.assemble((where, "bold"), f", where the decision changes: {safe(step.tool)}")
        for name, segments in step.args.items():
            yield Text.assemble(f"    {safe(name)}: ", _one_line(render_segments(segments)))
        yield from _sides(_decision(divergence.before), _decision(divergence.after))
        return
    why = {
        "call": "the agent makes a different call",
        "result": "the same call has a different result",
        "end": "one of the traces ends",
    }[divergence.what]
    yield Text.assemble((where, "bold"), f": {why}")
    yield from _sides(_brief(divergence.before), _brief(divergence.after))


def _sides(before: str, after: str) -> Iterator[Text]:
    yield Text.assemble(("    before: ", "dim"), before)
    yield Text.assemble(("    after:  ", "dim"), after)


def _decision(step: Step | None) -> str:
    assert step is not None
    return f"{safe(step.decision)}{f': {safe(step.reason)}' if step.reason else ''}"


def _brief(step: Step | None) -> str:
    if step is None:
        return "no call"
    args = ", ".join(
        f"{safe(name)}={_short(''.join(one.text for one in segments))}"
        for name, segments in step.args.items()
    )
    came = "ok" if step.ok else safe(step.error)
    return f"{safe(step.tool)}({args}): {safe(step.decision)}, {came}"


def _one_line(text: Text) -> Text:
    text = Text(" ").join(text.split("\n"))
    text.truncate(160, overflow="ellipsis")
    return text


def _print_trials(console: Console, title: str, rows: Sequence[TrialRow]) -> None:
    if rows:
        console.print(Text(f"\n{title}: {len(rows)}", "bold"))
    for row in rows:
        console.print(Text(f"  {safe(row.id)}  {safe(describe_trial(row))}"))
        for message in row.messages:
            _print_labelled(console, "user: ", message)
        if row.tool:
            args = ", ".join(f"{name}={_short(value)}" for name, value in row.args.items())
            _print_labelled(console, "stopped: ", f"{row.tool}({args}): {row.reason}")
        elif row.missing:
            _print_labelled(console, "not done: ", row.missing)


def _print_cells(console: Console, cells: Sequence[ComparedCell]) -> None:
    won = [one for one in cells if not one.after]
    lost = [one for one in cells if not one.before]
    changed = [one for one in cells if one.before and one.after]
    for title, group in (
        ("Cells that no longer lose points", won),
        ("Cells that now lose points", lost),
        ("Cells that lose points for another reason", changed),
    ):
        if group:
            console.print(Text(f"\n{title}: {len(group)}", "bold"))
        for one in group:
            console.print(Text(f"  {safe(one.cell)}"))
            if one.before:
                _print_labelled(console, f"{safe(one.before_id)} before: ", LOSSES[one.before])
            if one.after:
                _print_labelled(console, f"{safe(one.after_id)} after: ", LOSSES[one.after])


def _print_labelled(console: Console, label: str, text: str) -> None:
    console.print(Labelled(Text(f"      {label}"), Text(safe(text))))


def _short(value: object) -> str:
    return safe(repr(str(value)[:_SHOWN_CHARS]))
