"""`tiltyard calibrate`: measure the shipped attacks and guardrails."""

from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tiltyard.cli.agent_options import find_deterministic_ruleset
from tiltyard.cli.errors import exit_on_error
from tiltyard.cli.options import RulesetOption, SeedOption
from tiltyard.cli.tables import print_line
from tiltyard.cli.terminal import open_console
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.reporting.calibration_page import attack_table, curve, defense_table, page
from tiltyard.reporting.calibration_schema import Calibration
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.studies.calibration_run import CalibrationPlan, run_calibration

_DATA: Final = "calibration.json"
_PAGE: Final = "calibration.md"
_SHOWN: Final = ("guardrail", "attack", "breaches", "false positives", "raw", "score", "seconds")


def run(
    *,
    seed: SeedOption = PUBLIC_SEED,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Also play N other seeds, to check that the order holds."
        ),
    ] = 0,
    convergence: Annotated[
        bool,
        typer.Option("--convergence", help="Also measure how breaches grow with the steps."),
    ] = False,
    ruleset: RulesetOption = "design",
    out: Annotated[
        Path, typer.Option(metavar="DIR", help=f"Where to write {_DATA} and {_PAGE}.")
    ] = Path(),
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processes that play the other seeds.")
    ] = 2,
) -> None:
    """Measure the shipped attacks and guardrails, and compare them with the design's scores.

    Plays six guardrails against the baseline attack and the benign suite, and five attacks against
    the data-flow guardrail. Prints the tables and writes them as JSON and as Markdown.

    Example: tiltyard calibrate --convergence
    """
    with exit_on_error():
        rules = find_deterministic_ruleset(ruleset)
        _check_writable(out)
        done = _measure(CalibrationPlan(seed, seeds, convergence, workers), rules)
    console = open_console()
    _print_tables(console, done)
    _print_rest(console, done)
    (out / _DATA).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n")
    (out / _PAGE).write_text(page(done), encoding="utf-8")
    print_line(console, f"written: {out / _DATA}, {out / _PAGE}")


def _check_writable(out: Path) -> None:
    """Fail now rather than after all matches if the results cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / _DATA).touch()
    except OSError as error:
        reason = error.strerror or "cannot be written"
        raise typer.BadParameter(f"{out}: {reason}", param_hint="--out") from None


def _measure(plan: CalibrationPlan, rules: Ruleset) -> Calibration:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("calibrating")
        return run_calibration(plan, rules, lambda stage: progress.update(task, description=stage))


def _print_tables(console: Console, done: Calibration) -> None:
    for title, (head, rows) in (
        ("Guardrails, against the baseline Go-Explore", defense_table(done)),
        ("Attacks, against the data-flow guardrail", attack_table(done)),
    ):
        table = Table(title=title, caption="in brackets: what the design expects")
        shown = [at for at, name in enumerate(head) if name in _SHOWN]
        for at in shown:
            table.add_column(head[at], justify="left" if at == 0 else "right")
        for row in rows:
            expected = [head[at + 1 : at + 2] == ["expected"] for at in shown]
            table.add_row(
                *(
                    Text.assemble(row[at], (f" ({row[at + 1]})", "dim")) if beside else row[at]
                    for at, beside in zip(shown, expected, strict=True)
                )
            )
        console.print(table)


def _print_rest(console: Console, done: Calibration) -> None:
    for advice in done.advice:
        print_line(console, f"{advice.condition}: {'yes' if advice.holds else 'no'} ({advice.why})")
        for name, value in advice.changes.items():
            print_line(console, f"  change {name} to {value}")
    if done.other_seeds:
        total = len(done.other_seeds)
        defense = sum(other.defense_in_order for other in done.other_seeds)
        offense = sum(other.attack_in_order for other in done.other_seeds)
        print_line(
            console, f"other seeds in order: offense {offense}, defense {defense} of {total}"
        )
    for name, points in done.convergence.items():
        print_line(console, f"convergence against {name}")
        for line in curve(points):
            print_line(console, line)
