"""The leaderboard: ranks, runs that are not comparable, disqualification, and the command."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.cells import cell_len
from typer.testing import CliRunner

from tiltyard.cli.app import app
from tiltyard.reporting.leaderboard_schema import Board, Entry, League
from tiltyard.reporting.restriction import restricted
from tiltyard.reporting.schema import Isolation, Report, write_report
from tiltyard.runs.key import Key
from tiltyard.standings.leaderboard import (
    DisqualificationError,
    make_leaderboard,
    merit,
    read_disqualified,
)
from tiltyard.standings.report_set import ReportSet, ReportSetError, entry_of, gather

MakeReport = Callable[..., Report]
LEAGUE: Final = League("design-1", "d", "0.1.0", "")


def field(*reports: Report) -> ReportSet:
    return ReportSet(tuple(map(entry_of, reports)))


def ranks(board: Board) -> list[tuple[int, str]]:
    return [(standing.rank, standing.run.name) for standing in board.standings]


def save(directory: Path, *reports: Report) -> Path:
    for number, report in enumerate(reports):
        path = directory / "runs" / f"{report.run_id}-{number}" / "report.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(write_report(report))
    return directory


def command(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, args)])


def test_the_order_is_by_final_score_then_raw_then_breaches_then_false_positives(
    make_report: MakeReport,
) -> None:
    reports = [
        make_report("level b", (500, 200), (400, 10, 0)),
        make_report("fewest points", (100, 40), (200, 20, 0)),
        make_report("level a", (500, 200), (400, 10, 0)),
        make_report("capped, less raw", (1000, 420), (400, 10, 0)),
        make_report("capped, more raw", (1000, 548), (400, 10, 0)),
        make_report("more breaches", (600, 240), (500, 5, 3)),
        make_report("fewer breaches", (600, 240), (500, 4, 3)),
        make_report("fewer failed", (600, 240), (500, 5, 2)),
    ]
    (board,) = make_leaderboard(field(*reports)).boards
    assert ranks(board) == [
        (1, "capped, more raw"),
        (2, "capped, less raw"),
        (3, "fewer breaches"),
        (4, "fewer failed"),
        (5, "more breaches"),
        (6, "level a"),
        (6, "level b"),
        (8, "fewest points"),
    ]


def test_an_unplayed_track_gives_no_points_and_loses_ties(make_report: MakeReport) -> None:
    reports = [
        make_report("attack alone", (900, 360)),
        make_report("both", (0, 0), (900, 0, 0)),
        make_report("defense alone", None, (900, 0, 0)),
        make_report("neither much", (100, 40), (100, 30, 0)),
    ]
    (board,) = make_leaderboard(field(*reports)).boards
    assert ranks(board) == [
        (1, "attack alone"),
        (2, "both"),
        (2, "defense alone"),
        (4, "neither much"),
    ]


@st.composite
def many_runs(draw: st.DrawFn) -> list[Entry]:
    numbers = st.integers(0, 2)
    return [
        Entry(
            name=f"n{draw(st.integers(0, 3))}",
            run_id=f"{number:016x}",
            submission=f"{number:064x}",
            results="",
            league=LEAGUE,
            final_score=float(draw(numbers)),
            offense=0.0,
            raw=draw(st.none() | numbers),
            defense=0.0,
            breaches=draw(st.none() | numbers),
            false_positives=draw(numbers),
            benign_trials=35,
        )
        for number in range(draw(st.integers(1, 8)))
    ]


@given(many_runs(), st.randoms(use_true_random=False))
def test_a_rank_is_one_more_than_the_number_of_better_runs(
    runs: list[Entry], order: random.Random
) -> None:
    """Ranks are a total preorder and do not depend on the order of the reports."""
    (board,) = make_leaderboard(ReportSet(tuple(runs)), every_run=True).boards
    assert len(board.standings) == len(runs)
    for standing in board.standings:
        better = sum(_beats(other, standing.run) for other in runs)
        assert standing.rank == 1 + better
    shuffled = [*runs]
    order.shuffle(shuffled)
    assert make_leaderboard(ReportSet(tuple(shuffled)), every_run=True).boards == (board,)


def _beats(one: Entry, other: Entry) -> bool:
    """Compare two runs, written independently of `merit`."""
    for name, sign, missing in (
        ("final_score", 1, 0),
        ("raw", 1, 0),
        ("breaches", -1, 99),
        ("false_positives", -1, 99),
    ):
        mine, theirs = (getattr(run, name) for run in (one, other))
        mine = missing if mine is None else mine
        theirs = missing if theirs is None else theirs
        if mine != theirs:
            return bool(sign * mine > sign * theirs)
    return False


@given(many_runs(), st.randoms(use_true_random=False))
def test_a_name_appears_once_with_its_best_run(runs: list[Entry], order: random.Random) -> None:
    (board,) = make_leaderboard(ReportSet(tuple(runs))).boards
    assert sorted(s.run.name for s in board.standings) == sorted({run.name for run in runs})
    for standing in board.standings:
        own = [run for run in runs if run.name == standing.run.name]
        assert standing.runs == len(own)
        assert not any(_beats(run, standing.run) for run in own)
    shuffled = [*runs]
    order.shuffle(shuffled)
    assert make_leaderboard(ReportSet(tuple(shuffled))).boards == (board,)


def test_rounding_noise_does_not_decide_a_rank(make_report: MakeReport) -> None:
    a, b = (entry_of(make_report(name, (0.1, 1), (0.2, 0, 0))) for name in "ab")
    assert merit(structs.replace(a, final_score=0.3)) == merit(
        structs.replace(b, final_score=0.1 + 0.2)
    )


def test_rulesets_keys_and_engines_are_not_mixed(make_report: MakeReport) -> None:
    plain = make_report("a", (500, 200))
    other_rules = structs.replace(plain.setting, ruleset_digest="another")
    board = make_leaderboard(
        field(
            plain,
            make_report("b", (600, 240), engine="0.2.0"),
            make_report("c", (700, 280), key="aa"),
            make_report("d", (800, 320), key="bb"),
            make_report("e", (900, 360), setting=other_rules),
        )
    )
    assert sorted(ranks(each) for each in board.boards) == [[(1, name)] for name in "abcde"]


def test_runs_that_are_not_comparable_are_listed_with_reasons(make_report: MakeReport) -> None:
    quick = "the budget is quick, not official"
    reports = [
        make_report("quick", (900, 360), comparable=False, not_comparable_because=(quick,)),
        make_report("broken off", (900, 360), final_score=None),
        make_report("changed", (900, 360), (100, 50, 0), final_score=1900.0),
        make_report("lesser jail", (900, 360), isolation=Isolation("B")),
        make_report("no reason", (900, 360), comparable=False),
        make_report("fine", (1, 1)),
    ]
    found = make_leaderboard(field(*reports))
    assert [ranks(board) for board in found.boards] == [[(1, "fine")]]
    reasons = {run.name: run.why_not for run in found.apart}
    assert reasons.keys() == {"quick", "broken off", "changed", "lesser jail", "no reason"}
    assert reasons["quick"] == (quick,)
    assert reasons["broken off"] == ("the report has no final score",)
    assert "not the sum" in reasons["changed"][0]
    assert "level is B" in reasons["lesser jail"][0]


def test_copies_of_a_report_count_once(tmp_path: Path, make_report: MakeReport) -> None:
    report = make_report("a", (500, 200), (400, 10, 0), key="aa")
    worse_jail = structs.replace(
        report, comparable=False, not_comparable_because=("level B",), isolation=Isolation("B")
    )
    found = gather([save(tmp_path, report, restricted(report), worse_jail)])
    assert [run.why_not for run in found.runs] == [()]


def test_if_two_reports_of_a_run_disagree_neither_counts(
    tmp_path: Path, make_report: MakeReport
) -> None:
    honest = make_report("a", (500, 200))
    better = structs.replace(make_report("a", (900, 360)), run_id=honest.run_id)
    assert better.digest != honest.digest
    for order in ((honest, better), (better, honest)):
        directory = tmp_path / order[0].digest
        (run,) = gather([save(directory, *order)]).runs
        assert run.why_not == ("two reports of this run disagree",)


def test_the_same_files_under_another_name_are_pointed_out(make_report: MakeReport) -> None:
    first = make_report("a", (500, 200), content="same")
    second = structs.replace(make_report("b", (500, 200), content="same"), run_id="1" * 16)
    (board,) = make_leaderboard(field(first, second, make_report("c", (1, 1)))).boards
    assert [s.same_bytes_as for s in board.standings] == [("b",), ("a",), ()]


def test_disqualified_runs_have_a_reason_and_no_rank(make_report: MakeReport) -> None:
    cheat, honest = make_report("cheat", (1000, 999)), make_report("honest", (500, 200))
    again = make_report("honest", (400, 160), content="an earlier version")
    word = cheat.submission.digest[:12]
    found = make_leaderboard(field(cheat, honest, again), {word: "it was copied"})
    (board,) = found.boards
    assert ranks(board) == [(1, "honest")]
    assert [(d.run.name, d.reason) for d in board.disqualified] == [("cheat", "it was copied")]
    # If only a run is disqualified, the next best run of the name takes its place.
    (board,) = make_leaderboard(field(honest, again), {honest.run_id: "played twice"}).boards
    assert [(s.run.run_id, s.rank) for s in board.standings] == [(again.run_id, 1)]


def test_a_disqualification_that_matches_no_run_is_reported(make_report: MakeReport) -> None:
    found = make_leaderboard(field(make_report("a", (1, 1))), {"deadbeef": "typo"})
    assert found.unused == ("deadbeef",)


def test_an_ambiguous_disqualification_is_refused(make_report: MakeReport) -> None:
    runs = [
        structs.replace(entry_of(make_report(name, (1, 1))), submission=f"abcdef01{name}")
        for name in "23"
    ]
    with pytest.raises(DisqualificationError, match="more digits"):
        make_leaderboard(ReportSet(tuple(runs)), {"abcdef01": "which?"})


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("not toml", "is not TOML"),
        ('alice = "cheated"', "hexadecimal"),
        ('abc = "too short"', "8 or more"),
        ('deadbeef = ""', "has no reason"),
        ("deadbeef = 3", "has no reason"),
        ("[deadbeef]\nreason = 'x'", "has no reason"),
        ("\udcff", "is not TOML"),
    ],
)
def test_an_invalid_disqualification_file_gives_a_one_line_error(
    tmp_path: Path, make_report: MakeReport, text: str, word: str
) -> None:
    path = tmp_path / "out.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DisqualificationError, match=word):
        read_disqualified(path)
    store = save(tmp_path / "store", make_report("a", (1, 1)))
    done = command("leaderboard", store, "--disqualified", path)
    assert done.exit_code == 2
    assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_reports_are_found_in_files_runs_stores_and_directories(
    tmp_path: Path, make_report: MakeReport
) -> None:
    report = make_report("a", (500, 200))
    store = save(tmp_path / "store", report)
    (run,) = (store / "runs").iterdir()
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "a.json").write_bytes(write_report(report))
    for path in (store, store / "runs", run, run / "report.json", flat, flat / "a.json"):
        assert [found.name for found in gather([path]).runs] == ["a"]
    assert len(gather([store, flat, run]).runs) == 1


def test_a_file_that_is_not_a_report_is_refused_or_listed_as_unread(
    tmp_path: Path, make_report: MakeReport
) -> None:
    (tmp_path / "old.json").write_text('{"schema_version": 0}', encoding="utf-8")
    with pytest.raises(ReportSetError, match="schema version 0"):
        gather([tmp_path / "old.json"])
    with pytest.raises(ReportSetError, match="schema version 0"):
        gather([tmp_path])
    (tmp_path / "good.json").write_bytes(write_report(make_report("a", (1, 1))))
    found = gather([tmp_path])
    assert [run.name for run in found.runs] == ["a"]
    assert [unread.path for unread in found.unread] == [str(tmp_path / "old.json")]
    assert "old.json" in command("leaderboard", tmp_path).stdout


def test_json_contains_ranks_digests_and_reasons(tmp_path: Path, make_report: MakeReport) -> None:
    a, b = make_report("a", (500, 200), (400, 10, 1)), make_report("b", (1, 1))
    out = tmp_path / "out.toml"
    out.write_text(f'{b.run_id} = "a good reason"\n', encoding="utf-8")
    store = save(tmp_path / "store", a, b)
    done = command("leaderboard", store, "--disqualified", out, "--json")
    assert done.exit_code == 0
    (board,) = json.loads(done.stdout)["boards"]
    (standing,) = board["standings"]
    assert standing["rank"] == 1
    assert standing["run"]["final_score"] == 900
    assert standing["run"]["submission"] == a.submission.digest
    assert [entry["reason"] for entry in board["disqualified"]] == ["a good reason"]


def test_hostile_names_are_escaped_in_the_terminal_and_in_markdown(
    tmp_path: Path, make_report: MakeReport
) -> None:
    name = "[red]x[/red] | <b>\x1b[31m\u202e`y`"
    store = save(tmp_path, make_report(name, (1, 1)))
    for flags in ([], ["--markdown"]):
        done = command("leaderboard", store, *flags)
        assert done.exit_code == 0
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
    assert "[red]x[/red]" in command("leaderboard", store).stdout
    row = next(line for line in done.stdout.splitlines() if "red" in line)
    assert row.replace("\\|", "").count("|") == 12
    assert "<b>" not in row.replace("\\<", "")


@pytest.mark.parametrize("name", ["champions", "a" * 60, "two words " * 9])
def test_the_tables_fit_80_columns(tmp_path: Path, make_report: MakeReport, name: str) -> None:
    reason = "the isolation level is B, and only A is comparable; " * 3
    reports = [
        make_report(name, (1000, 516), (454.55, 8, 12)),
        make_report(f"{name}!", (1, 1), comparable=False, not_comparable_because=(reason,)),
    ]
    store = save(tmp_path, *reports)
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["leaderboard", str(store)])
    assert done.exit_code == 0
    framed = [line for line in done.stdout.splitlines() if line[:1] in "┏┃┡│└"]
    assert {*map(cell_len, framed)} <= {*range(60, 81)}
    for wanted in ("1,454.55", "1,000", "454.55", "12 of 70"):
        assert any(wanted in line for line in framed)


def test_several_leagues_are_announced_and_selected_by_key(
    tmp_path: Path, make_report: MakeReport
) -> None:
    key = Key("ab" * 32)
    official = make_report("a", (1, 1), key=key.fingerprint)
    store = save(tmp_path / "store", official, make_report("b", (2, 2)))
    assert "2 leagues" in command("leaderboard", store).stdout
    path = tmp_path / "organizer.key"
    path.write_text(key.secret, encoding="ascii")
    done = command("leaderboard", store, "--key", path, "--json")
    (board,) = json.loads(done.stdout)["boards"]
    assert [s["run"]["name"] for s in board["standings"]] == ["a"]
    path.write_text("cd" * 32, encoding="ascii")
    assert command("leaderboard", store, "--key", path).exit_code == 2


@pytest.mark.parametrize("name", ["leaderboard", "monitor"])
def test_without_reports_the_error_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for args in ([], ["nowhere"], [tmp_path]):
        done = command(name, *args)
        assert done.exit_code == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""


def test_a_match_with_a_model_is_ranked_only_with_its_record(
    tmp_path: Path, make_report: MakeReport
) -> None:
    report = make_report("told", (1, 1))
    report = structs.replace(report, setting=structs.replace(report.setting, agent="openai:gpt"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "report.json").write_bytes(write_report(report))
    (alone,) = gather([tmp_path / "run"]).not_comparable
    assert "record" in alone.why_not[0]
    (tmp_path / "run" / "exchanges").mkdir()
    assert not gather([tmp_path / "run"]).not_comparable
