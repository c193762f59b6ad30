"""Monitoring: percentiles and correlation, the design's strategies, and its advice."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from typer.testing import CliRunner

from tiltyard.cli.app import app
from tiltyard.reporting.monitor_page import histogram, page, scatter, successes
from tiltyard.reporting.monitor_schema import Monitoring
from tiltyard.reporting.schema import Report, write_report
from tiltyard.standings.leaderboard import make_leaderboard
from tiltyard.standings.monitoring import (
    classify,
    correlation,
    monitor,
    percentile,
    spread,
    strategies,
)
from tiltyard.standings.report_set import ReportSet, entry_of

MakeReport = Callable[..., Report]


def monitored(*reports: Report) -> Monitoring:
    (board,) = make_leaderboard(ReportSet(tuple(map(entry_of, reports)))).boards
    return monitor(board)


def test_percentiles_by_hand() -> None:
    # Four values: P75 lies 2.25 places behind the first, P90 2.7 places.
    assert percentile([40, 10, 30, 20], 50) == 25
    assert percentile([40, 10, 30, 20], 75) == 32.5
    assert percentile([40, 10, 30, 20], 90) == 37
    assert percentile([1, 2, 3, 4, 5], 75) == 4
    assert [percentile([7], percent) for percent in (0, 50, 75, 90, 100)] == [7] * 5
    assert percentile([], 50) is None


@given(st.lists(st.floats(0, 1000), min_size=2, max_size=40), st.integers(1, 99))
def test_percentiles_are_the_inclusive_quantiles(values: list[float], percent: int) -> None:
    expected = statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
    assert percentile(values, percent) == pytest.approx(expected)


def test_correlation_by_hand() -> None:
    assert correlation([(1, 2), (2, 4), (3, 6)]) == pytest.approx(1)
    assert correlation([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1)
    # Deviations -1 0 1 and -1 1 0: the products add up to 1, the squares to 2 each.
    assert correlation([(1, 1), (2, 3), (3, 2)]) == pytest.approx(0.5)


@pytest.mark.parametrize("pairs", [[], [(1, 2)], [(5, 1), (5, 2)], [(1, 5), (2, 5), (3, 5)]])
def test_constant_values_have_no_correlation(pairs: list[tuple[float, float]]) -> None:
    assert correlation(pairs) is None


def test_bins_cover_a_hundred_points_and_the_last_includes_full_marks() -> None:
    found = spread([0, 99.9, 100, 250, 999, 1000], 1000)
    assert found.bins == (2, 1, 1, 0, 0, 0, 0, 0, 0, 2)
    assert (found.lowest, found.highest) == (0, 1000)
    assert found.mean == pytest.approx(408.15)
    nothing = spread([], 1000)
    assert (nothing.count, nothing.median, nothing.mean) == (0, None, None)


def test_the_spread_of_a_track_covers_the_runs_that_played_it(make_report: MakeReport) -> None:
    found = monitored(
        make_report("a", (100, 40), (900, 1, 0)),
        make_report("b", (300, 120)),
        make_report("c", None, (500, 4, 2)),
        make_report("d", (200, 80), (700, 2, 0)),
    )
    assert (found.offense.count, found.offense.median) == (3, 200)
    assert (found.defense.count, found.defense.median) == (3, 700)
    assert (found.final.count, found.final.median) == (4, 700)
    assert found.correlated == 2
    assert found.correlation == pytest.approx(-1)


def test_the_strategies_are_the_designs() -> None:
    assert {one.name: (one.offense, one.defense, one.total) for one in strategies()} == {
        "red": ((700, 1000), (300, 500), (1000, 1500)),
        "blue": ((200, 400), (800, 1000), (1000, 1400)),
        "balanced": ((500, 700), (700, 900), (1200, 1600)),
        "elite": ((900, 1000), (950, 1000), (1850, 2000)),
    }


@pytest.mark.parametrize(
    ("offense", "defense", "strategy"),
    [
        (700, 300, "red"),
        (1000, 500, "red"),
        (1000, 500.5, "unclassified"),
        (699.99, 400, "unclassified"),
        (200, 1000, "blue"),
        (400, 800, "blue"),
        (500, 700, "balanced"),
        (700, 900, "balanced"),
        (900, 950, "elite"),
        (1000, 1000, "elite"),
        (899, 1000, "unclassified"),
        (25, 1000, "unclassified"),
        (None, 1000, "unclassified"),
        (1000, None, "unclassified"),
    ],
)
def test_both_ends_of_a_range_belong_to_it(
    make_report: MakeReport, offense: float | None, defense: float | None, strategy: str
) -> None:
    report = make_report(
        "a",
        None if offense is None else (offense, offense * 0.4),
        None if defense is None else (defense, 0, 0),
    )
    assert classify(entry_of(report)) == strategy


def eight(make_report: MakeReport) -> list[Report]:
    """Return eight runs.

    Their finals are 2000, 1500, 1450, 1400, 1200, 1100, 700 and 300: two are above P75, 1462.5.
    """
    return [
        make_report("elite", (1000, 548), (1000, 0, 0)),
        make_report("balanced 1", (650, 260), (850, 1, 0)),
        make_report("balanced 2", (600, 240), (850, 1, 0)),
        make_report("red", (1000, 420), (400, 10, 0)),
        make_report("blue 1", (350, 140), (850, 1, 0)),
        make_report("blue 2", (250, 100), (850, 1, 0)),
        make_report("neither", (300, 120), (400, 10, 0)),
        make_report("rookie", (100, 40), (200, 26, 0)),
    ]


def test_success_is_the_share_in_the_top_quartile(make_report: MakeReport) -> None:
    found = monitored(*eight(make_report))
    assert found.final.p75 == 1462.5
    assert {one.strategy: (one.count, one.top, one.success) for one in found.strategies} == {
        "red": (1, 0, 0),
        "blue": (2, 0, 0),
        "balanced": (2, 1, 0.5),
        "elite": (1, 1, 1),
        "unclassified": (2, 0, 0),
    }
    medians = {one.strategy: one.median for one in found.strategies}
    assert medians["balanced"] == 1475
    assert medians["unclassified"] == 500


def test_runs_that_tie_with_the_quartile_belong_to_it(make_report: MakeReport) -> None:
    found = monitored(*(make_report(name, (500, 200), (400, 10, 0)) for name in "abcde"))
    assert [one.top for one in found.runs] == [True] * 5


def test_a_strategy_without_runs_has_no_success(make_report: MakeReport) -> None:
    found = monitored(make_report("elite", (1000, 548), (1000, 0, 0)))
    assert {one.strategy: one.success for one in found.strategies} == {
        "red": None,
        "blue": None,
        "balanced": None,
        "elite": 1,
        "unclassified": None,
    }


def advice(make_report: MakeReport, raw: list[int], breaches: list[int]) -> dict[str, Any]:
    reports = [
        make_report(f"n{at}", (1, points), (1, holes, 0))
        for at, (points, holes) in enumerate(zip(raw, breaches, strict=True))
    ]
    return {one.condition: one.changes for one in monitored(*reports).advice if one.holds}


AS_EXPECTED: Final = [100, 150, 160, 900], [5, 6, 8, 40]


def test_advice_compares_the_median_with_the_middle_rung(make_report: MakeReport) -> None:
    assert advice(make_report, *AS_EXPECTED) == {}
    # 50 raw points give the expected 375 if 133 points give 1000; 320 do if 853 points give 1000.
    low = advice(make_report, [10, 40, 60, 500], AS_EXPECTED[1])
    assert low == {"offense scores too low": {"attack.full_marks": 130}}
    high = advice(make_report, [10, 300, 340, 500], AS_EXPECTED[1])
    assert high == {"offense scores too high": {"attack.full_marks": 850}}
    # Three quarters of a depth of 20.
    weak = advice(make_report, AS_EXPECTED[0], [2, 10, 13, 40])
    assert weak == {"defense scores too low": {"search.chain_steps": 15}}
    strong = advice(make_report, AS_EXPECTED[0], [0, 4, 5, 40])
    assert strong == {"defense scores too high": {}}


def test_few_runs_give_no_advice(make_report: MakeReport) -> None:
    assert advice(make_report, [0, 0, 0], [90, 90, 90]) == {}
    found = monitored(make_report("a", (1, 1)))
    assert [one.holds for one in found.advice] == [False] * 4


def test_advice_names_no_constant_of_an_unknown_ruleset(make_report: MakeReport) -> None:
    reports = [make_report(f"n{at}", (1, 1), (1, 90, 0)) for at in range(4)]
    other = structs.replace(reports[0].setting, ruleset_digest="another")
    found = monitored(*(structs.replace(report, setting=other) for report in reports))
    assert [(one.holds, one.changes) for one in found.advice] == [
        (True, {}),
        (False, {}),
        (True, {}),
        (False, {}),
    ]


def save(directory: Path, reports: list[Report]) -> Path:
    directory.mkdir(exist_ok=True)
    for report in reports:
        (directory / f"{report.run_id}.json").write_bytes(write_report(report))
    return directory


def command(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["monitor", *map(str, args)])


def test_the_command_prints_figures_strategies_and_advice(
    tmp_path: Path, make_report: MakeReport
) -> None:
    done = command(save(tmp_path, eight(make_report)))
    assert done.exit_code == 0
    for word in ("1,462.50", "balanced", "50%", "unclassified", "correlation", "too high"):
        assert word in done.stdout


def test_json_has_the_same_figures(tmp_path: Path, make_report: MakeReport) -> None:
    quick = make_report("quick", (1, 1), comparable=False, not_comparable_because=("quick",))
    done = command(save(tmp_path, [*eight(make_report), quick]), "--json")
    printed = json.loads(done.stdout)
    (league,) = printed["leagues"]
    assert league["final"]["p75"] == 1462.5
    assert league["offense"]["count"] == 8
    assert printed["not_comparable"] == 1


@pytest.mark.parametrize("tracks", [((1, 1), None), (None, (1, 1, 0)), ((0, 0), (0, 99, 35))])
def test_a_single_run_gives_no_nan(
    tmp_path: Path, make_report: MakeReport, tracks: tuple[Any, Any]
) -> None:
    directory = save(tmp_path, [make_report("a", *tracks)])
    for done in (command(directory), command(directory, "--json")):
        assert done.exit_code == 0
        assert "nan" not in done.stdout.lower().split()
        assert "NaN" not in done.stdout


def test_the_page_draws_every_run_over_the_frames_of_the_strategies(
    make_report: MakeReport,
) -> None:
    found = monitored(*eight(make_report), make_report("attack alone", (500, 200)))
    drawn = scatter(found)
    assert len(drawn.values) == 8
    assert {"name": "red", "offense": 1000, "defense": 400, "final": 1400, "strategy": "red"} in [
        *drawn.values
    ]
    assert len(drawn.spec["layer"][0]["data"]["values"]) == 4
    bins = [row["runs"] for row in histogram("", found.offense).values if row["kind"] == "bin"]
    assert bins == [0, 1, 1, 2, 0, 1, 2, 0, 0, 2]
    lines = [row for row in histogram("", found.offense).values if row["kind"] != "bin"]
    assert [row["kind"] for row in lines] == ["median", "P75", "P90"]
    shares = {row["strategy"]: row["success"] for row in successes(found.strategies).values}
    assert shares["elite"] == 1
    assert shares["blue"] == 0


def test_the_page_escapes_hostile_names(tmp_path: Path, make_report: MakeReport) -> None:
    name = "</script><script>alert(1)</script>"
    directory = save(tmp_path / "runs", [make_report(name, (1, 1), (1, 1, 1))])
    out = tmp_path / "monitor.html"
    assert command(directory, "--html", out).exit_code == 0
    text = out.read_text(encoding="utf-8")
    assert "alert(1)" in text
    assert name not in text
    assert command(directory, "--html", out / "below").exit_code == 2


def test_a_page_without_leagues_shows_the_remarks() -> None:
    assert "None of these runs" in page((), ("None of these runs can be compared.",))
