"""`tiltyard replay`: step through the trace of a finding or of a failed benign trial."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import DEFAULT_STORE, StoreOption, complete_finding, complete_run
from tiltyard.cli.replay_cell import cell_head, show_cell
from tiltyard.cli.tables import Labelled
from tiltyard.cli.terminal import LEGEND, open_console, render_segments, safe, safe_lines
from tiltyard.matches.arena import LostCell
from tiltyard.reporting.finding_schema import Finding, Segment, Step
from tiltyard.reporting.numbers import many
from tiltyard.reporting.schema import Replayable, Report, TrialRow, replayable
from tiltyard.reporting.words import describe_trial
from tiltyard.runs.store import Store, StoreError, find_report, load_report

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
            autocompletion=complete_finding,
            help="The id of a finding, such as A3 (offense) or D1 (defense), of a failed benign "
            "trial, such as B3, or of a lost cell of the arena, such as C12, in the newest run or "
            "in --run; or RUN:A3.",
        ),
    ],
    *,
    run_wanted: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="RUN",
            autocompletion=complete_run,
            help="A run id or its first digits, a run's directory, or a report.json.",
        ),
    ] = "",
    whole: Annotated[
        bool, typer.Option("--all", help="Print the whole trace without stopping.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Step through a finding, a failed benign trial or a lost cell: each call and its decision.

    Colours show who wrote a text. Text from strangers and protected text also stand in brackets.
    A mark shows the call that completes a finding. In a benign trial, marks show the call that the
    guardrail stopped and the argument that it objects to. In a lost cell, the calls of the user
    are on the left, and those that planted text ordered are on the right.

    In a terminal, press Enter or n for the next step, p for the previous one, q to quit. In a pipe,
    the whole trace is printed.

    Example: tiltyard replay B3

    Example: tiltyard replay 36c0:A3

    Example: tiltyard replay A3 --run .tiltyard/runs/36c0aed0a5fd25e4 --all
    """
    named, _, name = finding.rpartition(":")
    with exit_on_error():
        if named and run_wanted:
            raise StoreError(f"{finding!r} and --run both name a run; name it once")
        kept = Store(store)
        wanted = named or run_wanted
        report = load_report(find_report(wanted, kept) if wanted else kept.newest(1)[0])
        found = _find(report, name)
        stops = [*_stops(found)]
    console = open_console()
    if whole or not (console.is_terminal and sys.stdin.isatty()):
        console.print(_head(report, found))
        for stop in stops:
            console.print(stop)
        return
    _step_through(console, _head(report, found), stops)


def _stops(found: Replayable) -> Iterator[RenderableType]:
    if isinstance(found, LostCell):
        return show_cell(found)
    chain = found.chain if isinstance(found, Finding) else found.messages
    return show_steps(chain, found.steps, found.answers)


def _find(report: Report, name: str) -> Replayable:
    found = replayable(report)
    for one in found:
        if one.id.lower() == name.lower():
            return one
    trials = () if report.defense is None else report.defense.trials
    if any(trial.id.lower() == name.lower() for trial in trials):
        failed = _listed([one for one in found if isinstance(one, TrialRow)])
        others = f": {failed}" if failed else ", and none failed"
        raise StoreError(f"trial {name} passed; only failed trials can be replayed{others}")
    if report.restricted:
        raise StoreError(
            f"run {report.run_id} is an official run, and only its organizer may see the findings"
        )
    if not found:
        raise StoreError(f"run {report.run_id} has no findings to replay")
    raise StoreError(f"run {report.run_id} has no finding {name!r}; it has {_listed(found)}")


def _listed(found: Sequence[Replayable]) -> str:
    """Write ids that follow each other as a range: A1 to A9, B3, B5 to B7."""
    ranges: list[list[str]] = []
    for one in found:
        last = ranges[-1][-1] if ranges else ""
        follows = last[:1] == one.id[:1] and _number(one.id) == _number(last) + 1
        if follows:
            ranges[-1].append(one.id)
        else:
            ranges.append([one.id])
    return ", ".join(
        safe(ids[0]) if len(ids) == 1 else safe(f"{ids[0]} to {ids[-1]}") for ids in ranges
    )


def _number(name: str) -> int:
    digits = name[1:]
    return int(digits) if digits.isdecimal() and digits.isascii() else -1


def _head(report: Report, found: Replayable) -> RenderableType:
    if isinstance(found, LostCell):
        title, lines = cell_head(found)
        return Group(Text(safe(title), "bold"), *(Text(safe(line), "dim") for line in lines))
    if isinstance(found, Finding):
        title, lines = _finding_head(report, found)
    else:
        title, lines = _trial_head(report, found)
    return Group(
        Text(safe(title), "bold"),
        *(Text(safe(line), "dim") for line in lines),
        Text(LEGEND, "dim"),
    )


def _finding_head(report: Report, finding: Finding) -> tuple[str, list[str]]:
    way = f"{finding.source} to {finding.sink}, {finding.target}, {finding.route}"
    return f"{finding.predicate} (severity {finding.severity})", [
        f"run {report.run_id}  finding {finding.id}  {many(finding.points, 'point', 'points')}",
        f"{way}; {finding.counterfactual}",
    ]


def _trial_head(report: Report, trial: TrialRow) -> tuple[str, list[str]]:
    lines = [f"run {report.run_id}  benign trial {trial.id}"]
    if trial.reason:
        lines.append(f"the guardrail stopped {trial.tool or 'the task'}: {trial.reason}")
    if trial.missing:
        lines.append(f"the user did not get: {trial.missing}")
    return f"FALSE POSITIVE ({describe_trial(trial)})", lines


def show_steps(
    chain: Sequence[str], steps: Sequence[Step], answers: Sequence[str]
) -> Iterator[RenderableType]:
    """Yield a replay step by step: a message, a call or an answer."""
    for turn, message in enumerate(chain):
        said = render_segments([Segment(message, "user")])
        yield block(f"message {turn + 1} of {len(chain)}", [("user", said)])
        for step in steps:
            if step.turn == turn:
                yield call_block(step)
        if turn < len(answers):
            yield block("answer", [("agent", Text(safe_lines(answers[turn])))])


def call_block(step: Step, *more: tuple[str, Text]) -> RenderableType:
    """Return a call with its arguments, decision and result, and `more` rows."""
    rows = [(name, _argument(step, name)) for name in step.args]
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
    rows += more
    marks = ["SINK: this call completes the finding"] if step.is_sink else []
    marks += ["STOPPED: a false positive"] if step.stopped else []
    marks += ["on the way from source to sink"] if step.on_path and not step.is_sink else []
    return block(f"call {step.index}  {step.tool}", rows, *marks)


def _argument(step: Step, name: str) -> Text:
    text = render_segments(step.args[name])
    if name in step.offending:
        what = "the guardrail objects to this" if step.stopped else "the guardrail changed this"
        mark = Text(f"<= {what}", "bold red")
        # Before a long value, where the reader sees the mark first.
        return Text("\n" if "\n" in text.plain else "   ").join(
            (mark, text) if "\n" in text.plain else (text, mark)
        )
    return text


def block(title: str, rows: Sequence[tuple[str, Text]], *marks: str) -> RenderableType:
    """Return a title, and rows with a name each."""
    head = Text.assemble("\n", (safe(title), "bold"))
    if marks:
        urgent = marks[0].startswith(("SINK", "STOPPED"))
        head.append(f"   <= {'; '.join(marks)}", "bold red" if urgent else "yellow")
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
