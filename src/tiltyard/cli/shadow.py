"""`tiltyard shadow`: what a guardrail would have done on recorded runs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct

from tiltyard.agents.model.questions import (
    ModelSettings,
    ModelSettingsError,
    open_model,
    read_model_settings,
)
from tiltyard.bridges.dojo.listing import open_entrants
from tiltyard.bridges.traces.declared_tools import read_tools
from tiltyard.bridges.traces.errors import TraceError
from tiltyard.bridges.traces.formats import Format
from tiltyard.bridges.traces.read import TraceReader, find_traces
from tiltyard.cli.dojo import complete_guardrail
from tiltyard.cli.errors import MATCH_FAILED, exit_on_error, refuse
from tiltyard.cli.options import JsonOption, UnsafeOption
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, output_width, print_json
from tiltyard.contracts.asking import Ask, no_model
from tiltyard.contracts.policy import NO_POLICY, Policy, PolicyError, read_policy
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.page import Table
from tiltyard.reporting.shadow_page import (
    comparison_page,
    differences_lines,
    differences_table,
    figures_table,
    page,
    reason_table,
    setting,
    tool_table,
)
from tiltyard.reporting.shadow_schema import Comparison, Shadow
from tiltyard.studies.shadow import Contender, Surroundings, Watcher, shadow
from tiltyard.studies.shadow_counts import Tally
from tiltyard.studies.shadow_kept import KeptRuns

SHOWN: Final = 100
_MAX_SHOWN: Final = 10_000
_ROWS: Final = 12
_PROBLEMS: Final = 5


class _Request(Struct, frozen=True):
    """What the command line asks for."""

    traces: tuple[Path, ...]
    names: tuple[str, ...]
    """One guardrail, or two to compare."""
    format: Format | None = None
    tools: Path | None = None
    policy: Policy = NO_POLICY
    model: ModelSettings | None = None
    html: Path | None = None
    show: int = SHOWN
    unsafe: bool = False


def run(
    traces: Annotated[
        list[Path],
        typer.Argument(metavar="TRACES", help="Files or directories with recorded runs."),
    ],
    *,
    guardrail: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A listed guardrail's name, or a submission.",
            autocompletion=complete_guardrail,
        ),
    ] = "",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Two guardrails to compare, instead of --guardrail."),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The declarations of the tools, as JSON.",
            show_default="those in the traces, or else the names of the tools",
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The operator's policy, as TOML.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The model that guardrails may ask, as TOML."),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="The format of all traces.", show_default="detect it"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page that shows each stopped call."),
    ] = None,
    show: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=_MAX_SHOWN, help="How many runs the page shows at most."
        ),
    ] = SHOWN,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Say what a guardrail would have done on recorded runs of your agent.

    The guardrail hears the user's messages, decides every recorded call, and sees the results of
    the calls that it lets through. Nothing runs. If the traces have labels, the command also says
    how many useful runs it leaves untouched, and how many attacks it stops.

    Formats: Chat Completions messages (JSON Lines), AgentDojo's runs, Inspect's logs,
    OpenTelemetry's GenAI spans (OTLP as JSON Lines), transcripts of Claude Code, and records of
    `tiltyard guard`. Files may be compressed with gzip.

    Exit codes:

    - 0: the traces were read. Skipped runs are counted and named.
    - 1: the guardrail failed.
    - 2: the command is wrong, or no run can be read.
    - 3: this machine has no sandbox.
    - 130: interrupted.

    Example: tiltyard shadow logs/ --guardrail declared --tools tools.json --html shadow.html

    Example: tiltyard shadow logs/ --compare declared my-submission
    """
    with exit_on_error():
        asked = _Request(
            tuple(traces),
            _names(guardrail, compare),
            format_,
            tools,
            NO_POLICY if policy is None else _read_policy(policy),
            None if model is None else _read_model(model),
            html,
            show,
            unsafe,
        )
        found = _shadow(asked)
    if as_json:
        print_json(found)
    elif isinstance(found, Comparison):
        _print_comparison(found, html)
    else:
        _print_result(found, html)


def _names(guardrail: str, compare: tuple[str, str] | None) -> tuple[str, ...]:
    if bool(guardrail) == bool(compare):
        refuse("name one guardrail with --guardrail, or two with --compare")
    return compare or (guardrail,)


def _read_policy(path: Path) -> Policy:
    try:
        return read_policy(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        refuse(f"{path} is not UTF-8 text; save it as UTF-8")
    except PolicyError as error:
        refuse(f"{path}: {error}")


def _read_model(path: Path) -> ModelSettings:
    try:
        return read_model_settings(path.read_text(encoding="utf-8"), path.resolve().parent)
    except UnicodeDecodeError:
        refuse(f"{path} is not UTF-8 text; save it as UTF-8")
    except ModelSettingsError as error:
        refuse(f"{path}: {error}")


@contextmanager
def _open_model(settings: ModelSettings | None) -> Iterator[Ask]:
    if settings is None:
        yield no_model
        return
    with ExitStack() as stack:
        try:
            ask = stack.enter_context(open_model(settings))
        except ModelSettingsError as error:
            refuse(str(error))
        yield ask


def _shadow(asked: _Request) -> Shadow | Comparison:
    declared = None if asked.tools is None else read_tools(asked.tools)
    files = find_traces(asked.traces, [] if asked.tools is None else [asked.tools])
    with (
        _open_model(asked.model) as ask,
        open_entrants(asked.names, unsafe=asked.unsafe, ask=ask) as entrants,
        ProgressBars(lines=True) as bars,
    ):
        reader = TraceReader(files, asked.format, bars)
        names = [one.name for one in entrants]
        tally = Tally(names, len(files))
        kept = KeptRuns(names, asked.show)
        watchers: list[Watcher] = [tally] if asked.html is None else [tally, kept]
        around = Surroundings(declared, asked.policy)
        contenders = [Contender(one.name, one.begin) for one in entrants]
        try:
            shadow(reader.runs(), contenders, around, watchers)
        except GuardrailGoneError as error:
            refuse(f"a guardrail failed: {error}", MATCH_FAILED)
    if not tally.runs:
        why = f": {tally.problems[0]}" if tally.problems else ""
        raise TraceError(f"no run can be read{why}")
    return _finish(asked, tally, kept)


def _finish(asked: _Request, tally: Tally, kept: KeptRuns) -> Shadow | Comparison:
    """Return the result, and write the page."""
    if len(asked.names) > 1:
        compared = tally.comparison()
        if asked.html is not None:
            text = comparison_page(compared, kept.kept, kept.touched)
            write_whole(asked.html, text.encode())
        return compared
    found = tally.result()
    if asked.html is not None:
        write_whole(asked.html, page([found], kept.kept, kept.touched).encode())
    return found


def _print_result(found: Shadow, html: Path | None) -> None:
    _print_table(figures_table([found]), setting(found))
    if found.denied or found.questions or found.altered:
        _print_table(tool_table(found))
        _print_table(reason_table(found), folding="reason")
    _print_end(found, html)


def _print_comparison(found: Comparison, html: Path | None) -> None:
    _print_table(figures_table([found.first, found.second]), setting(found.first))
    console = open_console()
    for line in differences_lines(found):
        print_line(console, line)
    if found.differing:
        _print_table(differences_table(found), folding="run", optional=["place"])
    _print_end(found.first, html)


def _print_table(
    table: Table, line: str = "", folding: str = "", optional: Sequence[str] = ()
) -> None:
    console = open_console()
    if line:
        print_line(console, line)
    names = [one.title for one in table.columns]
    rows = table.rows[:_ROWS]
    print_table(
        console,
        table.caption,
        names,
        rows,
        left=[one.title for one in table.columns if one.kind != "number"],
        optional=optional,
        folding=folding,
        width=output_width(),
    )
    if len(table.rows) > _ROWS:
        print_line(console, f"  {len(table.rows) - _ROWS} more: see --json or --html")


def _print_end(found: Shadow, html: Path | None) -> None:
    console = open_console()
    if found.skipped:
        print_line(console, f"skipped: {found.skipped}")
        for problem in found.problems[:_PROBLEMS]:
            print_line(console, f"  {problem}")
        if found.skipped > _PROBLEMS:
            print_line(console, f"  {found.skipped - _PROBLEMS} more")
    if found.faults:
        print_line(console, f"the guardrail failed in {found.faults} calls, which count as denied")
    if html is not None:
        print_line(console, f"written: {html}")
