"""`tiltyard monitor`: how a competition goes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from tiltyard.cli.leaderboard import (
    Disqualified,
    EveryRun,
    Key,
    Runs,
    read_leaderboard,
    remarks,
)
from tiltyard.cli.problems import WRONG_USE, refuse
from tiltyard.cli.screen import number, open_console
from tiltyard.cli.showing import print_table, say
from tiltyard.foundation.files import write_whole
from tiltyard.standings.leaderboard import Leaderboard
from tiltyard.standings.monitor_page import page
from tiltyard.standings.monitoring import BINS, Fared, Monitoring, Spread, monitor

BAR: Final = 40


class Output(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    leagues: tuple[Monitoring, ...]
    not_comparable: int
    remarks: tuple[str, ...]


def run(
    runs: Runs = None,
    *,
    disqualified: Disqualified = None,
    key: Key = None,
    every_run: EveryRun = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how a competition goes: the spread of scores, strategies, and adjustments that are due.

    Counts what the leaderboard ranks: the best run of each name, without the disqualified.
    Percentiles are interpolated linearly, the correlation is Pearson's, and success is the share
    in the top quartile of the final score. Ends with 0, and with 2 if there is nothing to read.

    Example: tiltyard monitor .tiltyard --html monitor.html
    """
    board = read_leaderboard(runs, disqualified, key, every_run=every_run)
    leagues = tuple(map(monitor, board.boards))
    said = tuple(_said(board))
    if html is not None:
        try:
            write_whole(html, page(leagues, said).encode())
        except OSError as error:
            refuse(f"{html} cannot be written: {error.strerror}", WRONG_USE)
    if as_json:
        told = Output(leagues, len(board.apart), said)
        typer.echo(msgspec.json.format(msgspec.json.encode(told), indent=1).decode())
        return
    console = open_console()
    for league in leagues:
        _show(console, league)
    for sentence in said:
        say(console, sentence)
    if html is not None:
        say(console, f"written: {html}")


def _said(board: Leaderboard) -> Iterator[str]:
    yield from remarks(board)
    if board.apart:
        left_out = len(board.apart)
        yield f"Not comparable, and not counted: {left_out}; `tiltyard leaderboard` says why."


def _show(console: Console, league: Monitoring) -> None:
    spreads = {"offense": league.offense, "defense": league.defense, "final": league.final}
    print_table(
        console,
        league.league.title,
        ("score", "runs", "lowest", "median", "P75", "P90", "highest", "mean"),
        [_spread(name, spread) for name, spread in spreads.items()],
    )
    for name, spread in list(spreads.items())[:2]:
        say(console, f"{name} scores")
        for line in histogram(spread):
            say(console, line)
    found = "none to be had" if league.correlation is None else f"{league.correlation:+.3f}"
    say(
        console,
        f"correlation of offense and defense scores: {found} "
        f"({league.correlated} runs played both)",
    )
    head = ("strategy", "runs", "median final", "expected", "in top quartile", "success")
    print_table(console, "Strategies", head, map(fared, league.strategies))
    for advice in league.advice:
        say(console, f"{advice.condition}: {'yes' if advice.holds else 'no'} ({advice.why})")
        for name, value in advice.changes.items():
            say(console, f"  change {name} to {value}")


def _spread(name: str, spread: Spread) -> list[str]:
    figures = spread.lowest, spread.median, spread.p75, spread.p90, spread.highest, spread.mean
    return [name, str(spread.count), *(number(figure) for figure in figures)]


def fared(one: Fared) -> list[str]:
    expected = "-" if one.expected is None else "{:g} to {:g}".format(*one.expected)
    success = "-" if one.success is None else f"{one.success:.0%}"
    return [
        one.strategy,
        str(one.count),
        number(one.median),
        expected,
        str(one.top),
        success,
    ]


def histogram(spread: Spread) -> Iterator[str]:
    """Draw how many scores lie in each hundred."""
    most = max(*spread.bins, 1)
    for at, count in enumerate(spread.bins):
        ends = f"{at * 1000 // BINS:>5} to {(at + 1) * 1000 // BINS:<5}"
        yield f"{ends}{count:>4} {'#' * (count * BAR // most)}".rstrip()
