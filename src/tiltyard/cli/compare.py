"""`tiltyard compare`: what changed from one run to another."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiltyard.cli.problems import in_one_sentence
from tiltyard.cli.screen import (
    DEFAULT_STORE,
    RunArgument,
    StoreOption,
    UnsafeOption,
    number,
    open_console,
    shown,
    shown_segments,
    waiting,
)
from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.reporting.schema import Step, TrialRow
from tiltyard.runs.store import Store, find_report
from tiltyard.studies.comparison import (
    Change,
    Comparison,
    Followed,
    Parting,
    compare,
    open_run,
)


def run(
    before: RunArgument,
    after: RunArgument,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    store: StoreOption = DEFAULT_STORE,
    unsafe: UnsafeOption = False,
) -> None:
    """Say what changed from one run to another.

    Scores part by part, findings gained and lost by cell, false positives gained and lost, and the
    decisions that flipped: a chain of the one run is followed past the guardrail of the other,
    played again in the jail where need be, to the first event at which the two traces part.

    Example: tiltyard compare 36c0 91ab
    """
    with in_one_sentence(), waiting("following chains past the other guardrail"):
        runs = [open_run(find_report(wanted, Store(store))) for wanted in (before, after)]
        told = compare(*runs, unsafe=unsafe)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    console = open_console()
    _show_numbers(console, told)
    for track in TRACKS:
        _show_findings(console, told, track)
    _show_trials(console, "False positives gained", told.false_positives_gained)
    _show_trials(console, "False positives lost", told.false_positives_lost)
    for note in told.notes:
        console.print(Text(f"\nnote: {shown(note)}", "yellow"))


def _show_numbers(console: Console, told: Comparison) -> None:
    if told.settings:
        console.print(Text("Played otherwise, so scores say less:", "bold yellow"))
        for change in told.settings:
            console.print(
                Text(f"  {change.name}: {number(change.before)} -> {number(change.after)}")
            )
        console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in (told.before, told.after, "change"):
        table.add_column(Text(shown(name)), justify="right")
    for change in told.numbers:
        cells = [number(change.before), number(change.after), _difference(change)]
        table.add_row(Text(shown(change.name)), *map(Text, cells))
    console.print(table)


def _difference(change: Change) -> str:
    if isinstance(change.before, str | None) or isinstance(change.after, str | None):
        return ""
    less = change.after - change.before
    return f"+{number(less)}" if less > 0 else number(less) if less else "="


def _show_findings(console: Console, told: Comparison, track: Track) -> None:
    for fate in ("gained", "lost", "kept"):
        found = told.having(track, fate)
        if fate == "kept":
            found = [one for one in found if one.parting is not None]
        if not found:
            continue
        title = "kept, though traces part" if fate == "kept" else fate
        console.print(Text(f"\n{track.capitalize()}, findings {title}: {len(found)}", "bold"))
        if any(one.followed and one.parting is None for one in found):
            console.print(Text(f"  (*) {_UNPARTED[track, fate]}"))
        together: dict[tuple[str, ...], list[Followed]] = {}
        for one in found:
            together.setdefault(one.chain, []).append(one)
        for same in together.values():
            _show_chain(console, same)


_UNPARTED: Final = {
    ("defense", "lost"): "it still gets through, and the search did not come upon it",
    ("defense", "gained"): "it got through before, and the search did not come upon it",
    ("offense", "lost"): "it still gets through, and the attack did not come upon it",
    ("offense", "gained"): "it got through before, and the attack did not come upon it",
}


def _show_chain(console: Console, same: Sequence[Followed]) -> None:
    """Show the findings that one chain makes, and where it was stopped."""
    for one in same:
        predicate, source, sink, target, route = map(shown, one.cell)
        sign = {"gained": "+", "lost": "-"}.get(one.fate, "=")
        ids = " -> ".join(shown(name) for name in (one.before_id, one.after_id) if name)
        mark = " (*)" if one.followed and one.parting is None else ""
        cell = f"{predicate}  {source} to {sink}, {target}, {route}"
        console.print(Text(f"{sign} {ids}  {cell}{mark}"))
    for message in same[0].chain:
        console.print(Text(f"      user: {shown(message)}"))
    if same[0].parting is not None:
        for line in _part(same[0].parting):
            console.print(Text.assemble("      ", line))


def _part(parting: Parting) -> Iterator[Text]:
    step = parting.before or parting.after
    assert step is not None
    where = f"they part at call {step.index} of message {step.turn + 1}"
    if parting.what == "decision":
        yield Text.assemble((where, "bold"), f", where the decision flips: {shown(step.tool)}")
        for name, segments in step.args.items():
            yield Text.assemble(f"    {shown(name)}: ", _one_line(shown_segments(segments)))
        yield from _sides(_decision(parting.before), _decision(parting.after))
        return
    why = {
        "call": "the agent makes another call",
        "result": "the same call comes to something else",
        "end": "one of them has ended",
    }[parting.what]
    yield Text.assemble((where, "bold"), f": {why}")
    yield from _sides(_brief(parting.before), _brief(parting.after))


def _sides(before: str, after: str) -> Iterator[Text]:
    yield Text.assemble(("    before: ", "dim"), before)
    yield Text.assemble(("    after:  ", "dim"), after)


def _decision(step: Step | None) -> str:
    assert step is not None
    return f"{shown(step.decision)}{f': {shown(step.reason)}' if step.reason else ''}"


def _brief(step: Step | None) -> str:
    if step is None:
        return "nothing"
    args = ", ".join(
        f"{shown(name)}={''.join(shown(one.text) for one in segments)[:60]!r}"
        for name, segments in step.args.items()
    )
    came = "ok" if step.ok else shown(step.error)
    return f"{shown(step.tool)}({args}): {shown(step.decision)}, {came}"


def _one_line(text: Text) -> Text:
    text = Text(" ").join(text.split("\n"))
    text.truncate(160, overflow="ellipsis")
    return text


def _show_trials(console: Console, title: str, rows: Sequence[TrialRow]) -> None:
    if rows:
        console.print(Text(f"\n{title}: {len(rows)}", "bold"))
    for row in rows:
        console.print(Text(f"  {shown(row.operation)}, variant {row.variant}"))
        for message in row.messages:
            console.print(Text(f"      user: {shown(message)}"))
        if row.tool:
            args = ", ".join(
                f"{shown(name)}={shown(value)[:60]!r}" for name, value in row.args.items()
            )
            console.print(Text(f"      stopped: {shown(row.tool)}({args}): {shown(row.reason)}"))
        elif row.missing:
            console.print(Text(f"      not done: {shown(row.missing)}"))
