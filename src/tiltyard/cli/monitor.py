"""`tiltyard monitor`: statistics of a competition."""

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
    rank_reports,
    read_reports,
    write_page,
)
from tiltyard.cli.options import JsonOption
from tiltyard.cli.tables import print_line, print_table
from tiltyard.cli.terminal import format_number, open_console, print_json
from tiltyard.reporting.leaderboard_page import remarks
from tiltyard.reporting.leaderboard_schema import Leaderboard
from tiltyard.reporting.monitor_page import page
from tiltyard.reporting.monitor_schema import BINS, Monitoring, Spread, StrategyResult
from tiltyard.reporting.numbers import many
from tiltyard.standings.monitoring import monitor

BAR: Final = 40


class Output(msgspec.Struct, frozen=True):
    """The output of `--json`."""

    leagues: tuple[Monitoring, ...]
    not_comparable: int
    remarks: tuple[str, ...]


def run(
    runs: Runs = None,
    *,
    disqualified: Disqualified = None,
    key: Key = None,
    every_run: EveryRun = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print statistics of a competition: scores, strategies and adjustments of the rules.

    Counts the runs that `tiltyard leaderboard` ranks: the best run of each submission, without the
    disqualified ones. Percentiles are interpolated linearly, the correlation is Pearson's, and
    success is the share of runs in the top quartile of the final score.

    Exit codes:

    - 0: the statistics are printed.
    - 2: there is nothing to read, or a file cannot be used.

    Example: tiltyard monitor .tiltyard --html monitor.html
    """
    board = rank_reports(read_reports(runs, key), disqualified, every_run=every_run)
    leagues = tuple(map(monitor, board.boards))
    said = tuple(_notes(board))
    if html is not None:
        write_page(html, page(leagues, said))
    if as_json:
        print_json(Output(leagues, len(board.apart), said))
        return
    console = open_console()
    for league in leagues:
        _print_league(console, league)
    for sentence in said:
        print_line(console, sentence)
    if html is not None:
        print_line(console, f"written: {html}")


def _notes(board: Leaderboard) -> Iterator[str]:
    yield from remarks(board)
    if board.apart:
        left_out = many(len(board.apart), "run is", "runs are")
        yield f"{left_out} not comparable and not counted; `tiltyard leaderboard` says why."


def _print_league(console: Console, league: Monitoring) -> None:
    spreads = {"offense": league.offense, "defense": league.defense, "final": league.final}
    print_table(
        console,
        league.league.title,
        ("score", "runs", "min", "median", "P75", "P90", "max", "mean"),
        [_spread(name, spread) for name, spread in spreads.items()],
    )
    for name, spread in list(spreads.items())[:2]:
        print_line(console, f"{name} scores")
        for line in _histogram(spread):
            print_line(console, line)
    found = "unknown" if league.correlation is None else f"{league.correlation:+.3f}"
    both = many(league.correlated, "run", "runs")
    print_line(
        console,
        f"correlation of offense and defense scores: {found} ({both} played both)",
    )
    head = ("strategy", "runs", "median final", "expected", "top quartile", "success")
    print_table(console, "Strategies", head, map(_strategy_row, league.strategies))
    for advice in league.advice:
        print_line(console, f"{advice.condition}: {'yes' if advice.holds else 'no'} ({advice.why})")
        for name, value in advice.changes.items():
            print_line(console, f"  change {name} to {value}")


def _spread(name: str, spread: Spread) -> list[str]:
    figures = spread.lowest, spread.median, spread.p75, spread.p90, spread.highest, spread.mean
    return [name, str(spread.count), *(format_number(figure) for figure in figures)]


def _strategy_row(one: StrategyResult) -> list[str]:
    expected = "-" if one.expected is None else "{:g} to {:g}".format(*one.expected)
    success = "-" if one.success is None else f"{one.success:.0%}"
    return [
        one.strategy,
        str(one.count),
        format_number(one.median),
        expected,
        str(one.top),
        success,
    ]


def _histogram(spread: Spread) -> Iterator[str]:
    """Yield a bar for each hundred points, with the number of scores in it."""
    most = max(*spread.bins, 1)
    for at, count in enumerate(spread.bins):
        ends = f"{at * 1000 // BINS:>5} to {(at + 1) * 1000 // BINS:<5}"
        yield f"{ends}{count:>4} {'#' * (count * BAR // most)}".rstrip()
