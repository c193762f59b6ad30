"""`tiltyard replay`: step through the trace of a finding."""

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

from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import DEFAULT_STORE, StoreOption
from tiltyard.cli.tables import Labelled
from tiltyard.cli.terminal import LEGEND, open_console, render_segments, safe, safe_lines
from tiltyard.reporting.finding_schema import Finding, Segment, Step
from tiltyard.reporting.numbers import many
from tiltyard.reporting.schema import Report
from tiltyard.runs.store import REPORT, Store, StoreError, find_report, load_report

_KEYS: Final = "Enter or n: next   p: previous   q: quit"
_NEXT: Final = frozenset({"\r", "\n", " ", "n", "j", "\x1b[C", "\x1b[B"})
_PREVIOUS: Final = frozenset({"p", "k", "\x1b[D", "\x1b[A"})
_QUIT: Final = frozenset({"", "q", "\x1b", "\x04"})
_REST_OF_A_KEY_SECONDS: Final = 0.05
_DECISIONS: Final = {"allow": "green", "deny": "bold red", "confirm": "bold yellow"}


def run(
    finding: Annotated[
        str,
        typer.Argument(
            metavar="FINDING",
            help="A finding's id, such as A3 (offense) or D1 (defense), of the newest run or of "
            "--run; or RUN:A3.",
        ),
    ],
    *,
    run_wanted: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="RUN",
            help="A run id or its first digits, a run's directory, or a report.json.",
        ),
    ] = "",
    whole: Annotated[
        bool, typer.Option("--all", help="Print the whole trace without stopping.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Step through a finding: each message, call, decision and result.

    Colours show who wrote a text. Text from strangers and protected text also stand in brackets.
    In a terminal, press Enter or n for the next step, p for the previous one, q to quit. In a pipe,
    the whole trace is printed.

    Example: tiltyard replay 36c0:A3

    Example: tiltyard replay A3 --run .tiltyard/runs/36c0aed0a5fd25e4 --all
    """
    named, _, name = finding.rpartition(":")
    with exit_on_error():
        if named and run_wanted:
            raise StoreError(f"{finding!r} and --run both name a run; name it once")
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
    raise StoreError(f"no finished runs in {store.root}; name a run with --run")


def _find(report: Report, name: str) -> Finding:
    parts = [part for part in (report.offense, report.defense) if part is not None]
    found = [finding for part in parts for finding in part.found]
    for finding in found:
        if finding.id.lower() == name.lower():
            return finding
    if report.restricted:
        raise StoreError(
            f"run {report.run_id} is an official run, and only its organizer may see the findings"
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
        f"run {report.run_id}  finding {finding.id}  {many(finding.points, 'point', 'points')}",
        f"{way}; {finding.counterfactual}",
    ]
    return Group(
        Text(safe(f"{finding.predicate} (severity {finding.severity})"), "bold"),
        *(Text(safe(line), "dim") for line in lines),
        Text(LEGEND, "dim"),
    )


def _stops(finding: Finding) -> Iterator[RenderableType]:
    """Yield a finding step by step: a message, a call or an answer."""
    for turn, message in enumerate(finding.chain):
        said = render_segments([Segment(message, "user")])
        yield _block(f"message {turn + 1} of {len(finding.chain)}", [("user", said)])
        for step in finding.steps:
            if step.turn == turn:
                yield _call(step)
        if turn < len(finding.answers):
            yield _block("answer", [("agent", Text(safe_lines(finding.answers[turn])))])


def _call(step: Step) -> RenderableType:
    rows = [(name, render_segments(segments)) for name, segments in step.args.items()]
    if step.because:
        calls = ", ".join(f"{index}" for index in step.because)
        rows.append(("ordered by", Text(f"the result of call {calls}, not the user")))
    reason = f": {safe(step.reason)}" if step.reason else ""
    style = _DECISIONS.get(step.decision, "bold")
    rows.append(("decision", Text.assemble((safe(step.decision), style), reason)))
    if step.ok:
        rows.append(("result", render_segments(step.output)))
    elif step.error:
        rows.append(("result", Text(f"none: {safe(step.error)}")))
    rows += (("effect", Text(safe(effect), "bold")) for effect in step.effects)
    marks = ["SINK: this call completes the finding"] if step.is_sink else []
    marks += ["on the way from source to sink"] if step.on_path and not step.is_sink else []
    return _block(f"call {step.index}  {step.tool}", rows, *marks)


def _block(title: str, rows: Sequence[tuple[str, Text]], *marks: str) -> RenderableType:
    head = Text.assemble("\n", (safe(title), "bold"))
    if marks:
        head.append(f"   <= {'; '.join(marks)}", "bold red" if "SINK" in marks[0] else "yellow")
    width = max([10, *(len(safe(name)) for name, _ in rows)])
    lines: list[RenderableType] = [head]
    for name, text in rows:
        lead = Text(f"  {safe(name):{width}}  ", "dim")
        for line in text.split("\n", allow_blank=True):
            lines.append(Labelled(lead, line))
            lead = Text(" " * (width + 4))
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
    """Yield a function that waits for the next key. Keys that come together are not lost."""
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
