"""Charts: the data never becomes part of a specification."""

import msgspec
import pytest

from tiltyard.reporting import charts
from tiltyard.reporting.charts import Axis, Interval
from tiltyard.reporting.page import Plot

HOSTILE = "datum['x'] + (window.owned = 1)"
ROW: charts.Row = {"name": HOSTILE, "x": 1, "y": 2, "share": 0.5, "mark": "yes", "order": 0}
X, Y = Axis("x", "first", 10), Axis("y", "second", 10)
PLOTS = {
    "bars": charts.bars("title", {HOSTILE: 3}, "count"),
    "share bars": charts.share_bars("title", [ROW], "name", Axis("share", "share", 1)),
    "stacked bars": charts.stacked_bars(
        "title",
        [(HOSTILE, {"good": 1, "bad": 2})],
        ("name", "kind", "count"),
        {"good": "", "bad": ""},
    ),
    "bubbles": charts.bubbles(
        "title", [{**ROW, "x_order": 0}], x="x", y="name", size="y", mark="mark", note=""
    ),
    "scatter": charts.scatter(
        "title", [ROW], x=X, y=Y, group="name", colours={"known": charts.BAD}, frames=[]
    ),
    "intervals": charts.intervals("title", [Interval(HOSTILE, HOSTILE, 1, 2, 0, 1)], {}, ""),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_specification_contains_no_data(name: str) -> None:
    plot = PLOTS[name]
    assert HOSTILE in msgspec.json.encode(plot.values).decode()
    assert HOSTILE not in msgspec.json.encode(plot.spec).decode()


def test_a_line_starts_at_the_origin() -> None:
    assert charts.line("title", [(5, 2)], "steps", "cells").values == (
        {"steps": 0, "cells": 0},
        {"steps": 5, "cells": 2},
    )


def test_a_stacked_bar_has_the_layers_in_the_order_of_the_colours() -> None:
    plot = PLOTS["stacked bars"]
    assert [(row["kind"], row["layer"]) for row in plot.values] == [("good", 0), ("bad", 1)]


def test_a_histogram_covers_the_whole_range() -> None:
    marks = {"median": 250.0, "P75": None, "P90": 900.0}
    plot: Plot = charts.histogram(
        "title", [1, 0, 2, 1], Axis("score", "score", 1000), "runs", marks
    )
    bins = [(row["from"], row["to"], row["runs"]) for row in plot.values if row["kind"] == "bin"]
    assert bins == [(0, 250, 1), (250, 500, 0), (500, 750, 2), (750, 1000, 1)]
    assert [row["kind"] for row in plot.values if row["kind"] != "bin"] == ["median", "P90"]
