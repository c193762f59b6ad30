"""`tiltyard calibrate`: measure the shipped attacks and guardrails."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tiltyard.bridges.dojo.listing import listed_guardrails, open_entrants
from tiltyard.cli.agent_options import find_deterministic_ruleset
from tiltyard.cli.errors import exit_on_error, refuse
from tiltyard.cli.options import RulesetOption, SeedOption
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import open_console
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.reporting.arena_calibration import HEAD as ARENA_HEAD
from tiltyard.reporting.arena_calibration import calibration_markdown, calibration_rows
from tiltyard.reporting.calibration_page import attack_table, curve, defense_table, page
from tiltyard.reporting.calibration_schema import Calibration
from tiltyard.rulesets.ruleset import Ruleset
from tiltyard.studies.arena_calibration import Measured, calibrate_arena
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
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="With --ruleset arena: also play this submission."),
    ] = None,
) -> None:
    """Measure the shipped attacks and guardrails, and compare them with the design's scores.

    Plays six guardrails against the baseline attack and the benign suite, and five attacks against
    the data-flow guardrail. Prints the tables and writes them as JSON and as Markdown.

    With `--ruleset arena`, plays the guardrails of `tiltyard dojo` in the arena: the shipped ones
    and one-liners. `--also` adds a submission, whose guardrail runs in the sandbox. The scores
    have 95% intervals.

    Example: tiltyard calibrate --convergence

    Example: tiltyard calibrate --ruleset arena --also examples/elite
    """
    with exit_on_error():
        rules = find_deterministic_ruleset(ruleset)
        _check_writable(out)
        if rules.arena is not None:
            if seeds or convergence:
                refuse(f"--seeds and --convergence do not work with the ruleset {rules.id}")
            _calibrate_arena(seed, rules, out, also or [])
            return
        if also:
            refuse("--also works only with --ruleset arena")
        done = _measure(CalibrationPlan(seed, seeds, convergence, workers), rules)
    console = open_console()
    _print_tables(console, done)
    _print_rest(console, done)
    (out / _DATA).write_bytes(msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n")
    (out / _PAGE).write_text(page(done), encoding="utf-8")
    print_line(console, f"written: {out / _DATA}, {out / _PAGE}")


def _calibrate_arena(seed: int, rules: Ruleset, out: Path, also: Sequence[Path]) -> None:
    wanted = [*(one.name for one in listed_guardrails()), *map(str, also)]
    with open_entrants(wanted) as entrants, _stages() as show:
        guardrails = [Measured(one.name, one.family, one.begin) for one in entrants]
        done = calibrate_arena(guardrails, seed, rules, show)
    console = open_console()
    title = f"Guardrails in the arena: {done.cells} cells in {done.worlds} worlds"
    rows = calibration_rows(done)
    optional = ("family", "untouched")
    print_table(console, title, ARENA_HEAD, rows, left=("family",), optional=optional)
    data = msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n"
    (out / _DATA).write_bytes(data)
    (out / _PAGE).write_text(calibration_markdown(done), encoding="utf-8")
    print_line(console, f"written: {out / _DATA}, {out / _PAGE}")


@contextmanager
def _stages() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is played."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("calibrating")
        yield lambda stage: progress.update(task, description=stage)


def _check_writable(out: Path) -> None:
    """Fail now rather than after all matches if the results cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / _DATA).touch()
    except OSError as error:
        reason = error.strerror or "cannot be written"
        raise typer.BadParameter(f"{out}: {reason}", param_hint="--out") from None


def _measure(plan: CalibrationPlan, rules: Ruleset) -> Calibration:
    with _stages() as show:
        return run_calibration(plan, rules, show)


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
