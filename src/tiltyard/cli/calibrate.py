"""`tiltyard calibrate`: both ladders, measured, beside what the design expects."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from msgspec import structs
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tiltyard.cli.agents import find_deterministic_ruleset
from tiltyard.cli.problems import in_one_sentence
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.studies.calibration import Calibration, calibrate, measure_convergence, measure_seed
from tiltyard.studies.calibration_tables import attack_table, curve, defense_table, page
from tiltyard.world.generate import generate

CONVERGENCE_OF: Final = ("allow-all", "simple rules", "pattern matching", "taint tracking")
_SHOWN: Final = ("guardrail", "attack", "breaches", "false positives", "raw", "score", "seconds")


def run(
    *,
    seed: Annotated[int, typer.Option(help="The scenario's seed.")] = PUBLIC_SEED,
    seeds: Annotated[
        int,
        typer.Option(help="How many other seeds to play, to see whether the order holds.", min=0),
    ] = 0,
    convergence: Annotated[
        bool, typer.Option("--convergence", help="Show how breaches and cells grow with the steps.")
    ] = False,
    ruleset: Annotated[str, typer.Option(help="A ruleset's name, or a file.")] = "design",
    out: Annotated[
        Path, typer.Option(help="Where to write calibration.json and calibration.md.")
    ] = Path(),
    workers: Annotated[int, typer.Option(help="Processes for other seeds.", min=1)] = 2,
) -> None:
    """Play both ladders and show them beside the design's expected scores.

    Six guardrails against the baseline Go-Explore and the benign suite, five attacks against the
    data-flow guardrail. Prints the tables, and writes them as JSON and as Markdown.

    Example: tiltyard calibrate --convergence
    """
    console = Console(highlight=False)
    with in_one_sentence():
        rules = find_deterministic_ruleset(ruleset)
    _prepare(out)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("calibrating")

        def tell(what: str) -> None:
            progress.update(task, description=what)

        done = calibrate(seed, rules, tell)
        if convergence:
            curves = {}
            for name in CONVERGENCE_OF:
                tell(f"convergence against {name}")
                curves[name] = measure_convergence(generate(seed), name, rules)
            done = structs.replace(done, convergence=curves)
        if seeds:
            others = [number for number in range(1, seeds + 2) if number != seed][:seeds]
            tell(f"{seeds} other seeds")
            with ProcessPoolExecutor(workers) as pool:
                measured = tuple(pool.map(measure_seed, others, [rules] * seeds))
            done = structs.replace(done, other_seeds=measured)
    _show(console, done)
    (out / "calibration.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(done), indent=1) + b"\n"
    )
    (out / "calibration.md").write_text(page(done), encoding="utf-8")
    console.print(f"written: {out / 'calibration.json'}, {out / 'calibration.md'}")


def _prepare(out: Path) -> None:
    """Find out before everything is played whether the result can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "calibration.json").touch()
    except OSError as error:
        reason = error.strerror or "cannot be written"
        raise typer.BadParameter(f"{out}: {reason}", param_hint="--out") from None


def _show(console: Console, done: Calibration) -> None:
    for title, (head, rows) in (
        ("Guardrails, against the baseline Go-Explore", defense_table(done)),
        ("Attacks, against the data-flow guardrail", attack_table(done)),
    ):
        table = Table(title=title, caption="in brackets: what the design expects")
        shown = [at for at, name in enumerate(head) if name in _SHOWN]
        for at in shown:
            table.add_column(head[at], justify="left" if at == 0 else "right")
        for row in rows:
            table.add_row(
                *(
                    f"{row[at]} [dim]({row[at + 1]})[/dim]"
                    if head[at + 1 : at + 2] == ["expected"]
                    else row[at]
                    for at in shown
                )
            )
        console.print(table)
    for advice in done.advice:
        console.print(f"{advice.condition}: {'yes' if advice.holds else 'no'} ({advice.why})")
        for name, value in advice.changes.items():
            console.print(f"  change {name} to {value}")
    if done.other_seeds:
        total = len(done.other_seeds)
        defense = sum(other.defense_in_order for other in done.other_seeds)
        attack = sum(other.attack_in_order for other in done.other_seeds)
        console.print(f"other seeds in order: defense {defense}, attack {attack} of {total}")
    for name, points in done.convergence.items():
        console.print(f"convergence against {name}")
        for line in curve(points):
            console.print(line)
