"""`tiltyard replay`: a finding's trace, step by step."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from tiltyard.cli.problems import in_one_sentence
from tiltyard.cli.screen import (
    DEFAULT_STORE,
    LEGEND,
    StoreOption,
    open_console,
    shown,
    shown_lines,
    shown_segments,
)
from tiltyard.reporting.schema import Finding, Report, Segment, Step
from tiltyard.runs.store import REPORT, Store, StoreError, find_report, load_report

_KEYS: Final = "Enter or n: next   p: previous   q: quit"
_NEXT: Final = frozenset({"\r", "\n", " ", "n", "j", "\x1b[C", "\x1b[B"})
_PREVIOUS: Final = frozenset({"p", "k", "\x1b[D", "\x1b[A"})
_QUIT: Final = frozenset({"", "q", "\x1b", "\x04"})
_REST_OF_A_KEY_SECONDS: Final = 0.05
_DECISIONS: Final = {"allow": "green", "deny": "bold red", "confirm": "bold yellow"}


def run(
    finding: Annotated[str, typer.Argument(help="RUN:A3, or A3 of --run or of the newest run.")],
    *,
    run_wanted: Annotated[
        str, typer.Option("--run", help="A run id or its first digits, a directory, a report.")
    ] = "",
    whole: Annotated[bool, typer.Option("--all", help="Show everything at once.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Step through a finding: message, call, decision with its reason, result.

    In colours by author; what strangers wrote and what is secret stands in brackets as well. In a
    terminal, Enter or n goes on, p goes back and q ends; into a pipe, everything goes at once.

    Example: tiltyard replay 36c0:A3

    Example: tiltyard replay A3 --run .tiltyard/runs/36c0aed0a5fd25e4 --all
    """
    named, _, name = finding.rpartition(":")
    with in_one_sentence():
        if named and run_wanted:
            raise StoreError(f"the run is named in {finding!r} and by --run; name it once")
        kept = Store(store)
        report = load_report(find_report(named or run_wanted or _newest(kept), kept))
        found = _find(report, name)
    console = open_console()
    if whole or not (console.is_terminal and sys.stdin.isatty()):
        console.print(_head(report, found))
        for stop in _stops(found):
            console.print(stop)
        return
    _step_through(console, _head(report, found), [*_stops(found)])


def _newest(store: Store) -> str:
    for directory, _ in store.all():
        return str(directory / REPORT)
    raise StoreError(f"there are no finished runs in {store.root}; name one with --run")


def _find(report: Report, name: str) -> Finding:
    parts = [part for part in (report.offense, report.defense) if part is not None]
    found = [finding for part in parts for finding in part.found]
    for finding in found:
        if finding.id.lower() == name.lower():
            return finding
    if report.restricted:
        raise StoreError(
            f"run {report.run_id} is an official one: its findings are the organizer's to see"
        )
    if not found:
        raise StoreError(f"run {report.run_id} has no findings to replay")
    ids = ", ".join(
        group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}"
        for _, each in groupby((one.id for one in found), key=lambda one: one[:1])
        for group in [[*each]]
    )
    raise StoreError(f"run {report.run_id} has no finding {name!r}; it has {ids}")


def _head(report: Report, finding: Finding) -> RenderableType:
    way = f"{finding.source} to {finding.sink}, {finding.target}, {finding.route}"
    lines = [
        f"run {report.run_id}  finding {finding.id}  {finding.points} points",
        f"{way}; {finding.counterfactual}",
    ]
    return Group(
        Text(shown(f"{finding.predicate} (severity {finding.severity})"), "bold"),
        *(Text(shown(line), "dim") for line in lines),
        Text(LEGEND, "dim"),
    )


def _stops(finding: Finding) -> Iterator[RenderableType]:
    """Yield a finding in the pieces that a reader stops at."""
    for turn, message in enumerate(finding.chain):
        said = shown_segments([Segment(message, "user")])
        yield _block(f"message {turn + 1} of {len(finding.chain)}", [("user", said)])
        for step in finding.steps:
            if step.turn == turn:
                yield _call(step)
        if turn < len(finding.answers):
            yield _block("answer", [("agent", Text(shown_lines(finding.answers[turn])))])


def _call(step: Step) -> RenderableType:
    rows = [(name, shown_segments(segments)) for name, segments in step.args.items()]
    if step.because:
        calls = ", ".join(f"{index}" for index in step.because)
        rows.append(("ordered by", Text(f"what call {calls} delivered, not the user")))
    reason = f": {shown(step.reason)}" if step.reason else ""
    style = _DECISIONS.get(step.decision, "bold")
    rows.append(("decision", Text.assemble((shown(step.decision), style), reason)))
    if step.ok:
        rows.append(("result", shown_segments(step.output)))
    elif step.error:
        rows.append(("result", Text(f"none: {shown(step.error)}")))
    rows += (("effect", Text(shown(effect), "bold")) for effect in step.effects)
    marks = ["SINK: this completes it"] if step.is_sink else []
    marks += ["on the way from source to sink"] if step.on_path and not step.is_sink else []
    return _block(f"call {step.index}  {step.tool}", rows, *marks)


def _block(title: str, rows: Sequence[tuple[str, Text]], *marks: str) -> RenderableType:
    head = Text.assemble("\n", (shown(title), "bold"))
    if marks:
        head.append(f"   <= {'; '.join(marks)}", "bold red" if "SINK" in marks[0] else "yellow")
    width = max([10, *(len(shown(name)) for name, _ in rows)])
    lines: list[RenderableType] = [head]
    for name, text in rows:
        lead = Text(f"{shown(name):{width}}  ", "dim")
        for line in text.split("\n", allow_blank=True):
            lines.append(Text.assemble("  ", lead, line))
            lead = Text(" " * (width + 2))
    return Group(*lines)


def _step_through(console: Console, head: RenderableType, stops: Sequence[RenderableType]) -> None:
    at = 0
    with _keys() as next_key, suppress(KeyboardInterrupt):
        while at < len(stops):
            console.clear()
            console.print(head)
            console.print(stops[at])
            console.print(Text(f"\n{at + 1} of {len(stops)}   {_KEYS}", "reverse"))
            key = next_key()
            if key in _QUIT:
                return
            if key in _PREVIOUS:
                at = max(0, at - 1)
            elif key in _NEXT:
                at += 1


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Give keys as they are pressed. None is lost, however fast they come."""
    terminal = sys.stdin.fileno()

    def next_key() -> str:
        key = os.read(terminal, 1)
        if key == b"\x1b" and select.select([terminal], [], [], _REST_OF_A_KEY_SECONDS)[0]:
            key += os.read(terminal, 2)
        return key.decode("utf-8", "replace")

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield next_key
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
