"""`tiltyard dojo`: play guardrails on AgentDojo, without a language model."""

from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from tiltyard.bridges.dojo.errors import DojoError
from tiltyard.bridges.dojo.listing import listed_guardrails, open_entrants
from tiltyard.bridges.dojo.measure import measure, read_arena, recorded_arena
from tiltyard.bridges.dojo.suites import DEVELOPMENT, HALVES, HELD_OUT, SUITES
from tiltyard.cli.errors import MATCH_FAILED, exit_on_error, refuse
from tiltyard.cli.options import JsonOption, UnsafeOption
from tiltyard.cli.progress import ProgressBars
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console, output_width, print_json
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.foundation.files import write_whole
from tiltyard.reporting.dojo_page import (
    MEANINGS,
    concordance_lines,
    half_table,
    page,
    setting,
    table,
)
from tiltyard.reporting.dojo_picture import picture
from tiltyard.reporting.dojo_schema import Dojo

DATA: Final = "dojo.json"
PAGE: Final = "dojo.html"
PICTURE: Final = "frontier.svg"
_ALL: Final = "all"
_OPTIONAL: Final = ("family", "alone", "solved")


def complete_guardrail(incomplete: str) -> list[str]:
    """Return the listed guardrails whose names begin so, without spaces."""
    names = (one.name.replace(" ", "-").replace(",", "") for one in listed_guardrails())
    return [name for name in names if name.startswith(incomplete.lower())]


def run(
    *,
    guardrail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A listed guardrail's name, or a submission. Repeat it for several.",
            show_default="all listed guardrails",
            autocompletion=complete_guardrail,
        ),
    ] = None,
    suites: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"AgentDojo's suites, with commas between them: {', '.join(SUITES)}; or {_ALL}.",
        ),
    ] = ",".join(DEVELOPMENT),
    arena: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores to compare with: the calibration.json of `calibrate --ruleset arena`.",
            show_default="the recorded scores of the listed guardrails",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Write {DATA}, {PAGE} and {PICTURE} to this directory."),
    ] = None,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Play guardrails on AgentDojo's tasks, without a language model.

    An agent follows the plan of each user task. When it reads an injection, it also makes the calls
    that the injection asks for. The command counts the pairs of a user task and an injection that
    are solved, untouched and not breached. It needs the extra `dojo`.

    Look at banking and travel while you develop a guardrail. The other suites show whether it
    works on tools that you have not seen.

    Exit codes:

    - 0: the measurement is complete.
    - 1: a guardrail failed.
    - 2: the command is wrong.
    - 3: this machine has no sandbox.
    - 130: interrupted.

    Example: tiltyard dojo --guardrail allow-all --guardrail my-submission --suites banking

    Example: tiltyard dojo --suites all --out dojo
    """
    with exit_on_error():
        chosen = _parse_suites(suites)
        scores = recorded_arena() if arena is None else read_arena(arena)
        if out is not None and out.exists() and not out.is_dir():
            refuse(f"--out {out} is a file; name a directory")
        found = _measure(guardrail or [], chosen, scores, unsafe=unsafe)
        if out is not None:
            data = msgspec.json.format(msgspec.json.encode(found), indent=1)
            write_whole(out / DATA, data + b"\n")
            write_whole(out / PAGE, page(found).encode())
            write_whole(out / PICTURE, picture(found, HALVES).encode())
    if as_json:
        print_json(found)
        return
    _print_results(found, out)


def _parse_suites(words: str) -> list[str]:
    if words == _ALL:
        return [*SUITES]
    chosen = [word.strip() for word in words.split(",")]
    for word in chosen:
        if word not in SUITES:
            known = ", ".join((*DEVELOPMENT, *HELD_OUT))
            raise DojoError(f"unknown suite {word!r}; expected some of {known}, or {_ALL}")
    return [*dict.fromkeys(chosen)]


def _measure(
    wanted: list[str], suites: list[str], arena: dict[str, float] | None, *, unsafe: bool
) -> Dojo:
    try:
        with open_entrants(wanted, unsafe=unsafe) as entrants, ProgressBars(lines=True) as bars:
            return measure(entrants, suites, arena, bars)
    except GuardrailGoneError as error:
        refuse(f"a guardrail failed: {error}", MATCH_FAILED)


def _print_results(found: Dojo, out: Path | None) -> None:
    console = open_console()
    print_line(console, setting(found))
    shown = table(found)
    names = [one.title for one in shown.columns]
    print_table(
        console,
        shown.caption,
        names,
        shown.rows,
        left=["family"],
        optional=_OPTIONAL,
        width=output_width(),
    )
    for meaning in MEANINGS:
        print_line(console, f"  {meaning}")
    if found.halves:
        halves = half_table(found)
        titles = [one.title for one in halves.columns]
        print_table(console, halves.caption, titles, halves.rows, width=output_width())
    for line in concordance_lines(found):
        print_line(console, line)
    if out is not None:
        print_line(console, f"written: {out / PAGE}, {out / DATA}, {out / PICTURE}")
