"""The state of a competition as an HTML page."""

from collections.abc import Iterator, Sequence
from typing import Final

from tiltyard.judge.scoring import FULL_SCORE
from tiltyard.reporting import charts
from tiltyard.reporting.charts import Axis, Frame
from tiltyard.reporting.monitor_schema import UNCLASSIFIED, Monitoring, Spread, StrategyResult
from tiltyard.reporting.numbers import figure
from tiltyard.reporting.page import (
    Block,
    Card,
    Cards,
    Column,
    Note,
    Plot,
    Row,
    Section,
    Table,
    Tone,
    render_page,
)

_COLOURS: Final = {
    "red": charts.BAD,
    "blue": charts.ACCENT,
    "balanced": charts.GOOD,
    "elite": charts.INK,
    UNCLASSIFIED: charts.MUTED,
}
_DEFINITIONS: Final = (
    "Percentiles are interpolated linearly between the closest ranks. The correlation is "
    "Pearson's. Success is the share of a strategy's runs in the top quartile of the final score, "
    "that is, at or above P75."
)


def page(leagues: Sequence[Monitoring], remarks: Sequence[str] = ()) -> str:
    """Return one self-contained HTML file."""
    sections = [section for at, one in enumerate(leagues, 1) for section in sections_of(one, at)]
    if remarks:
        sections.append(Section("remarks", "Remarks", (Note("", points=tuple(remarks)),)))
    return render_page("The competition so far", sections, "Scores, strategies and advice")


def sections_of(league: Monitoring, at: int = 1) -> Iterator[Section]:
    """Yield the sections of one league: scores, strategies and advice."""
    histograms = (
        histogram("Offense scores", league.offense),
        histogram("Defense scores", league.defense),
    )
    definitions = Note(_DEFINITIONS, "quiet")
    blocks = (_cards(league), _spreads(league), Row(histograms), definitions)
    yield Section(f"scores-{at}", "Scores", blocks, league.league.title)
    yield Section(
        f"strategies-{at}",
        "Strategies",
        (scatter(league), _results(league.strategies), successes(league.strategies)),
        "A run belongs to a strategy if its scores lie in the ranges that the design expects of "
        "it: the frames in the chart.",
    )
    lead = "The design proposes to change the ruleset if one of these conditions holds."
    yield Section(f"advice-{at}", "Potential adjustments", tuple(_advice(league)), lead)


def _cards(league: Monitoring) -> Cards:
    found = "none" if league.correlation is None else f"{league.correlation:+.2f}"
    note = f"between offense and defense, over {league.correlated} runs that played both"
    return Cards(
        (
            Card("Runs", str(league.final.count)),
            Card("Median offense", figure(league.offense.median), f"{FULL_SCORE}"),
            Card("Median defense", figure(league.defense.median), f"{FULL_SCORE}"),
            Card("Correlation", found, note=note),
        )
    )


def _spreads(league: Monitoring) -> Table:
    names = "runs", "lowest", "median", "P75", "P90", "highest", "mean"
    columns = (Column("score"), *(Column(name, "number") for name in names))
    spreads = {"offense": league.offense, "defense": league.defense, "final": league.final}
    rows = tuple(
        (
            name,
            str(one.count),
            *map(figure, (one.lowest, one.median, one.p75, one.p90, one.highest, one.mean)),
        )
        for name, one in spreads.items()
    )
    return Table("Distribution of the scores", columns, rows)


def _results(results: Sequence[StrategyResult]) -> Table:
    columns = (
        Column("strategy"),
        Column("runs", "number"),
        Column("median final", "number"),
        Column("expected", "number"),
        Column("in top quartile", "number"),
    )
    rows = tuple(
        (
            one.strategy,
            str(one.count),
            figure(one.median),
            "-" if one.expected is None else "{:g}–{:g}".format(*one.expected),
            str(one.top),
        )
        for one in results
    )
    return Table("Results by strategy", columns, rows)


def _advice(league: Monitoring) -> Iterator[Block]:
    for advice in league.advice:
        state = "holds" if advice.holds else "does not hold"
        changes = tuple(f"change {name} to {value}" for name, value in advice.changes.items())
        tone: Tone = "bad" if advice.holds else "quiet"
        yield Note(f"{advice.condition}: {state}, {advice.why}.", tone, changes)


def histogram(title: str, spread: Spread) -> Plot:
    """Draw how many scores lie in each tenth of the range, with median, P75 and P90."""
    marks = {"median": spread.median, "P75": spread.p75, "P90": spread.p90}
    return charts.histogram(title, spread.bins, Axis("score", "score", FULL_SCORE), "runs", marks)


def scatter(league: Monitoring) -> Plot:
    """Draw every run that played both matches, over the frames of the strategies."""
    rows: list[charts.Row] = [
        {
            "name": one.run.name,
            "offense": one.run.offense,
            "defense": one.run.defense,
            "final": one.run.final_score or 0.0,
            "strategy": one.strategy,
        }
        for one in league.runs
        if one.run.offense is not None and one.run.defense is not None
    ]
    frames = [
        Frame(one.strategy, one.expected_offense, one.expected_defense)
        for one in league.strategies
        if one.expected_offense is not None and one.expected_defense is not None
    ]
    return charts.scatter(
        "Runs by their two scores",
        rows,
        x=Axis("offense", "offense score", FULL_SCORE),
        y=Axis("defense", "defense score", FULL_SCORE),
        group="strategy",
        colours=_COLOURS,
        frames=frames,
    )


def successes(results: Sequence[StrategyResult]) -> Plot:
    """Draw the success of each strategy that has runs."""
    rows: list[charts.Row] = [
        {"strategy": one.strategy, "runs": one.count, "success": one.success}
        for one in results
        if one.success is not None
    ]
    share = Axis("success", "share in the top quartile", 1)
    return charts.share_bars("Success", rows, "strategy", share)
