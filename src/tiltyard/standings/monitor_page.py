"""A competition's course as a page: the same figures as `monitoring`, in plots and tables."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tiltyard.judge.scoring import FULL_SCORE
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
    render_page,
)
from tiltyard.reporting.plots import ACCENT, BREACH, QUIET
from tiltyard.standings.monitoring import BINS, UNCLASSIFIED, Fared, Monitoring, Spread, strategies

_COLOURS: Final = {
    "red": BREACH,
    "blue": ACCENT,
    "balanced": "var(--good)",
    "elite": "var(--ink)",
    UNCLASSIFIED: "var(--muted)",
}
Values = dict[str, str | int | float | bool]
_HEIGHT: Final = 300
_ROW_HEIGHT: Final = 26
_DEFINITIONS: Final = (
    "Percentiles are interpolated linearly between the closest ranks, and the correlation is "
    "Pearson's. Success is the share of a strategy's runs in the top quartile of the final score: "
    "at or above its P75."
)


def page(leagues: Sequence[Monitoring], remarks: Sequence[str] = ()) -> str:
    """Return one self-contained HTML file."""
    sections = [section for at, one in enumerate(leagues, 1) for section in _sections(one, at)]
    if remarks:
        sections.append(Section("remarks", "Remarks", (Note("", points=tuple(remarks)),)))
    return render_page("How the competition goes", sections, _DEFINITIONS)


def _sections(league: Monitoring, at: int) -> Iterator[Section]:
    yield Section(
        f"scores-{at}",
        "Scores",
        (
            _cards(league),
            _spreads(league),
            Row(
                (
                    histogram("Offense scores", league.offense),
                    histogram("Defense scores", league.defense),
                )
            ),
        ),
        league.league.title,
    )
    yield Section(
        f"strategies-{at}",
        "Strategies",
        (scatter(league), Row((_fares(league.strategies), successes(league.strategies)))),
        "Classified by the scores that the design expects of each: the frames in the plot.",
    )
    yield Section(f"advice-{at}", "Potential adjustments", tuple(_advice(league)))


def _cards(league: Monitoring) -> Cards:
    found = "none" if league.correlation is None else f"{league.correlation:+.2f}"
    return Cards(
        (
            Card("Runs", str(league.final.count)),
            Card("Median offense", _number(league.offense.median), "1000"),
            Card("Median defense", _number(league.defense.median), "1000"),
            Card("Correlation", found, note=f"of {league.correlated} runs that played both"),
        )
    )


def _spreads(league: Monitoring) -> Table:
    names = "runs", "lowest", "median", "P75", "P90", "highest", "mean"
    columns = (Column("score"), *(Column(name, "number") for name in names))
    rows = [
        (name, str(one.count), *map(_number, _figures(one)))
        for name, one in (
            ("offense", league.offense),
            ("defense", league.defense),
            ("final", league.final),
        )
    ]
    return Table("How scores are spread", columns, tuple(rows))


def _figures(one: Spread) -> tuple[float | None, ...]:
    return one.lowest, one.median, one.p75, one.p90, one.highest, one.mean


def _fares(fared: Sequence[Fared]) -> Table:
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
            _number(one.median),
            "-" if one.expected is None else "{:g}–{:g}".format(*one.expected),
            str(one.top),
        )
        for one in fared
    )
    return Table("How strategies fare", columns, rows)


def _advice(league: Monitoring) -> Iterator[Block]:
    for advice in league.advice:
        state = "holds" if advice.holds else "does not hold"
        changes = tuple(f"change {name} to {value}" for name, value in advice.changes.items())
        tone = "bad" if advice.holds else "quiet"
        yield Note(f"{advice.condition}: {state}, {advice.why}.", tone, changes)  # type: ignore[arg-type]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


# Plots -------------------------------------------------------------------------------------------


def _axis(field: str, title: str, most: int) -> dict[str, Any]:
    scale = {"domain": [0, most], "nice": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def histogram(title: str, spread: Spread) -> Plot:
    """Draw how many scores lie in each hundred, with lines at the median, P75 and P90."""
    width = FULL_SCORE // BINS
    bars: list[Values] = [
        {"kind": "bin", "from": at * width, "to": (at + 1) * width, "runs": count}
        for at, count in enumerate(spread.bins)
    ]
    marks = [("median", spread.median), ("P75", spread.p75), ("P90", spread.p90)]
    lines: list[Values] = [
        {"kind": name, "from": at, "to": at, "runs": 0} for name, at in marks if at is not None
    ]
    spec = {
        "width": "container",
        "height": 180,
        "layer": [
            {
                "transform": [{"filter": {"field": "kind", "equal": "bin"}}],
                "mark": {"type": "bar", "color": QUIET},
                "encoding": {
                    "x": {
                        **_axis("from", "score", FULL_SCORE),
                        "bin": {"binned": True, "step": width},
                    },
                    "x2": {"field": "to"},
                    "y": {
                        "field": "runs",
                        "type": "quantitative",
                        "axis": {"tickMinStep": 1, "format": "d", "tickCount": 4},
                    },
                    "tooltip": [{"field": name} for name in ("from", "to", "runs")],
                },
            },
            {
                "transform": [{"filter": {"not": {"field": "kind", "equal": "bin"}}}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": _axis("from", "score", FULL_SCORE),
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "title": None,
                        "scale": {
                            "domain": [name for name, _ in marks],
                            "range": [ACCENT, "var(--good)", BREACH],
                        },
                        "legend": {"orient": "top"},
                    },
                    "tooltip": [{"field": "kind"}, {"field": "from", "title": "score"}],
                },
            },
        ],
    }
    return Plot(title, spec, (*bars, *lines))


def scatter(league: Monitoring) -> Plot:
    """Draw every run that played both matches, over the frames of the strategies."""
    frames = [
        {
            "strategy": one.name,
            "x": one.offense[0],
            "x2": one.offense[1],
            "y": one.defense[0],
            "y2": one.defense[1],
        }
        for one in strategies()
    ]
    colour = {
        "field": "strategy",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [*_COLOURS], "range": [*_COLOURS.values()]},
        "legend": {"orient": "top"},
    }
    spec = {
        "width": "container",
        "height": _HEIGHT,
        "layer": [
            {
                "data": {"values": frames},
                "mark": {"type": "rect", "filled": False, "strokeWidth": 1.5},
                "encoding": {
                    "x": _axis("x", "offense score", FULL_SCORE),
                    "x2": {"field": "x2"},
                    "y": _axis("y", "defense score", FULL_SCORE),
                    "y2": {"field": "y2"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
                "encoding": {
                    "x": _axis("offense", "offense score", FULL_SCORE),
                    "y": _axis("defense", "defense score", FULL_SCORE),
                    "color": colour,
                    "tooltip": [
                        {"field": name}
                        for name in ("name", "offense", "defense", "final", "strategy")
                    ],
                },
            },
        ],
    }
    rows: list[Values] = [
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
    return Plot("Runs by their two scores", spec, tuple(rows))


def successes(fared: Sequence[Fared]) -> Plot:
    """Draw the success of each strategy; one that nobody has chosen has none."""
    rows: list[Values] = [
        {"strategy": one.strategy, "runs": one.count, "success": one.success, "order": order}
        for order, one in enumerate(fared)
        if one.success is not None
    ]
    spec = {
        "width": "container",
        "height": _ROW_HEIGHT * len(rows),
        "mark": {"type": "bar", "color": ACCENT, "height": {"band": 0.6}},
        "encoding": {
            "y": {
                "field": "strategy",
                "type": "nominal",
                "sort": {"field": "order", "op": "min"},
                "title": None,
            },
            "x": {
                **_axis("success", "share in the top quartile", 1),
                "axis": {"format": "%", "tickCount": 5},
            },
            "tooltip": [
                {"field": "strategy"},
                {"field": "runs"},
                {"field": "success", "format": ".0%"},
            ],
        },
    }
    return Plot("Success", spec, tuple(rows))
