"""Charts: every Vega-Lite specification of the project.

A page names the data, the titles and the colours (`report_sections`, for the report of a run); this
module turns them into a `Plot`. A specification names columns only. The data travels beside it as
rows, so no hostile text can become part of a specification.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from tiltyard.reporting.page import Plot

Value = str | int | float | bool
Row = Mapping[str, Value]
Spec = dict[str, Any]

# Variables of the page's style sheet: charts follow the light and the dark theme, and paper.
ACCENT: Final = "var(--accent)"
BAD: Final = "var(--bad)"
GOOD: Final = "var(--good)"
INK: Final = "var(--ink)"
MUTED: Final = "var(--muted)"
QUIET: Final = "var(--bar)"

_BAR_HEIGHT: Final = 26
_LOW: Final = 180
_HIGH: Final = 300
_BAR: Final = {"type": "bar", "height": {"band": 0.6}}
_WHOLE_NUMBERS: Final = {"tickMinStep": 1, "format": "d", "tickCount": 5}
_PERCENT: Final = {"format": "%", "tickCount": 5}


class Axis(Struct, frozen=True):
    """A column of numbers from 0 to `most`, and its title in the chart."""

    field: str
    title: str
    most: float


class Frame(Struct, frozen=True):
    """A named rectangle behind the points of a scatter chart."""

    name: str
    x: tuple[float, float]
    y: tuple[float, float]


class Interval(Struct, frozen=True):
    """A measured share with its confidence interval, each from 0 to 1."""

    name: str
    group: str
    count: int
    of: int
    low: float
    high: float


def bars(title: str, counts: Mapping[str, float], what: str, *, color: str = ACCENT) -> Plot:
    """Draw one bar for each count, in the given order."""
    number = {"mark": {"type": "text", "align": "left", "dx": 5}}
    spec = _sized(_BAR_HEIGHT * len(counts)) | {
        "encoding": {
            "y": _names("name"),
            "x": _amount("count", what, axis=_WHOLE_NUMBERS),
            "tooltip": [*_tooltip("name"), {"field": "count", "title": what}],
        },
        "layer": [
            {"mark": {**_BAR, "color": color}},
            {**number, "encoding": {"text": {"field": "count"}}},
        ],
    }
    rows: list[Row] = [
        {
            "name": name,
            "count": int(count) if count == int(count) else round(count, 2),
            "order": order,
        }
        for order, (name, count) in enumerate(counts.items())
    ]
    return Plot(title, spec, tuple(rows))


def share_bars(title: str, rows: Sequence[Row], name: str, share: Axis) -> Plot:
    """Draw one bar for each share of `rows`; the other columns appear in the tooltip."""
    others = [field for field in (rows[0] if rows else {}) if field != share.field]
    spec = _sized(_BAR_HEIGHT * len(rows)) | {
        "mark": {**_BAR, "color": ACCENT},
        "encoding": {
            "y": _names(name),
            "x": {**_scaled(share), "axis": _PERCENT},
            "tooltip": [*_tooltip(*others), *_tooltip(share.field, percent=True)],
        },
    }
    ordered = tuple({**row, "order": order} for order, row in enumerate(rows))
    return Plot(title, spec, ordered)


def stacked_bars(
    title: str,
    counts: Sequence[tuple[str, Mapping[str, int]]],
    columns: tuple[str, str, str],
    colours: Mapping[str, str],
) -> Plot:
    """Draw one bar for each name in `counts`, divided by the layers in `colours`.

    `columns` names what the bars, the layers and the counts stand for.
    """
    name, layer, count = columns
    rows: list[Row] = [
        {name: bar, layer: part, count: parts[part], "order": order, "layer": position}
        for order, (bar, parts) in enumerate(counts)
        for position, part in enumerate(colours)
        if parts.get(part)
    ]
    spec = _sized(_BAR_HEIGHT * len(counts)) | {
        "mark": _BAR,
        "encoding": {
            "y": _names(name),
            "x": {**_amount(count, count, axis=_WHOLE_NUMBERS), "stack": "zero"},
            "order": {"field": "layer"},
            "color": _colour(layer, colours, {"orient": "top", "symbolType": "square"}),
            "tooltip": _tooltip(name, layer, count),
        },
    }
    return Plot(title, spec, tuple(rows))


def line(title: str, points: Iterable[tuple[int, int]], x: str, y: str) -> Plot:
    """Draw how `y` grows with `x`, from the origin."""
    spec = _sized(_LOW) | {
        "mark": {"type": "line", "color": ACCENT, "interpolate": "step-after", "point": False},
        "encoding": {
            "x": _amount(x, x, axis={"format": "~s", "tickCount": 5, "grid": False}),
            "y": _amount(y, y, axis={"format": "~s", "tickCount": 4, "tickMinStep": 1}),
        },
    }
    return Plot(title, spec, tuple({x: at, y: value} for at, value in [(0, 0), *points]))


def history(title: str, rows: Sequence[Row], *, x: str, y: str, best: str) -> Plot:
    """Draw the value `y` of each numbered row as a point, and the best value so far as a line."""
    number = {"format": "d", "tickMinStep": 1, "tickCount": min(10, len(rows)), "grid": False}
    amount = {"format": ",~f", "tickCount": 4}
    spec = _sized(_LOW) | {
        "encoding": {
            "x": {**_amount(x, x, axis=number), "scale": {"domain": [0.5, len(rows) + 0.5]}}
        },
        "layer": [
            {
                "mark": {"type": "line", "color": QUIET, "interpolate": "step-after"},
                "encoding": {"y": _amount(best, y, axis=amount)},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "y": _amount(y, y, axis=amount),
                    "color": {"value": ACCENT},
                    "tooltip": _tooltip(*(rows[0] if rows else ())),
                },
            },
        ],
    }
    return Plot(title, spec, tuple(rows))


def bubbles(  # noqa: PLR0913 - four columns
    title: str, rows: Sequence[Row], *, x: str, y: str, size: str, mark: str, note: str
) -> Plot:
    """Draw a circle for each row, as large as `size`, and a diamond where `mark` is "yes".

    The columns `x_order` and `order` sort the horizontal and the vertical axis.
    """
    area = {"scale": {"range": [12, 420], "zero": False}, "legend": None}
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 70, "opacity": 1}
    spec = _sized(_BAR_HEIGHT * len({row["order"] for row in rows})) | {
        "encoding": {
            "x": {
                "field": x,
                "type": "ordinal",
                "sort": {"field": "x_order", "op": "min"},
                # The first number of a range such as 8–11: whole ranges would collide.
                "axis": {
                    "labelAngle": 0,
                    "labelExpr": "split(datum.label, '–')[0]",
                    # On a phone, every second label stands.
                    "labelOverlap": "parity",
                    "labelSeparation": 4,
                },
                "title": f"{x}, from",
            },
            "y": {**_names(y), "axis": {"grid": True}},
            "tooltip": _tooltip(*(name for name in rows[0] if name not in ("order", "x_order"))),
        },
        "layer": [
            {
                "mark": {"type": "circle", "color": ACCENT, "opacity": 0.35},
                "encoding": {"size": {"field": size, "type": "quantitative", **area}},
            },
            {
                "transform": [{"filter": {"field": mark, "equal": "yes"}}],
                "mark": {**diamond, "color": BAD},
            },
        ],
    }
    return Plot(title, spec, tuple(rows), note)


def histogram(
    title: str, bins: Sequence[int], x: Axis, count: str, marks: Mapping[str, float | None]
) -> Plot:
    """Draw the counts of equal parts of the range of `x`, and a line at each of the `marks`."""
    step = x.most / len(bins)
    edges = [round(at * step) for at in range(len(bins) + 1)]
    columns: list[Row] = [
        {"kind": "bin", "from": start, "to": stop, count: number}
        for (start, stop), number in zip(pairwise(edges), bins, strict=True)
    ]
    lines: list[Row] = [
        {"kind": name, "from": at, "to": at, count: 0}
        for name, at in marks.items()
        if at is not None
    ]
    position = _scaled(Axis("from", x.title, x.most))
    colours = dict(zip(marks, (ACCENT, GOOD, BAD), strict=True))
    is_bin = {"field": "kind", "equal": "bin"}
    spec = _sized(_LOW) | {
        "layer": [
            {
                "transform": [{"filter": is_bin}],
                "mark": {"type": "bar", "color": QUIET},
                "encoding": {
                    "x": {**position, "bin": {"binned": True, "step": step}},
                    "x2": {"field": "to"},
                    "y": _amount(count, count, axis={**_WHOLE_NUMBERS, "tickCount": 4}),
                    "tooltip": _tooltip("from", "to", count),
                },
            },
            {
                "transform": [{"filter": {"not": is_bin}}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": position,
                    "color": _colour("kind", colours, {"orient": "top"}),
                    "tooltip": [*_tooltip("kind"), {"field": "from", "title": x.title}],
                },
            },
        ]
    }
    return Plot(title, spec, (*columns, *lines))


def scatter(  # noqa: PLR0913 - two axes and the groups
    title: str,
    rows: Sequence[Row],
    *,
    x: Axis,
    y: Axis,
    group: str,
    colours: Mapping[str, str],
    frames: Sequence[Frame],
) -> Plot:
    """Draw a point for each row, over a frame for each expected region."""
    regions = [
        {group: one.name, "x": one.x[0], "x2": one.x[1], "y": one.y[0], "y2": one.y[1]}
        for one in frames
    ]
    colour = _colour(group, colours, {"orient": "top"})
    spec = _sized(_HIGH) | {
        "layer": [
            {
                "data": {"values": regions},
                "mark": {"type": "rect", "filled": False, "strokeWidth": 1.5},
                "encoding": {
                    "x": _scaled(Axis("x", x.title, x.most)),
                    "x2": {"field": "x2"},
                    "y": _scaled(Axis("y", y.title, y.most)),
                    "y2": {"field": "y2"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
                "encoding": {
                    "x": _scaled(x),
                    "y": _scaled(y),
                    "color": colour,
                    "tooltip": _tooltip(*(rows[0] if rows else ())),
                },
            },
        ]
    }
    return Plot(title, spec, tuple(rows))


def intervals(
    title: str, shares: Sequence[Interval], colours: Mapping[str, str], note: str
) -> Plot:
    """Draw each share as a point on the line of its confidence interval."""
    rows: list[Row] = [
        {
            "name": one.name,
            "group": one.group,
            "count": one.count,
            "of": one.of,
            "share": one.count / one.of,
            "low": one.low,
            "high": one.high,
            "order": order,
        }
        for order, one in enumerate(shares)
    ]
    low = {**_scaled(Axis("low", "share", 1)), "axis": _PERCENT}
    spec = _sized(_BAR_HEIGHT * len(rows)) | {
        "encoding": {
            "y": _names("name"),
            "color": _colour("group", colours, None),
            "tooltip": [
                *_tooltip("name", "count", "of"),
                *_tooltip("share", "low", "high", percent=True),
            ],
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5},
                "encoding": {"x": low, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": _scaled(Axis("share", "share", 1))},
            },
        ],
    }
    return Plot(title, spec, tuple(rows), note)


def _sized(height: int) -> Spec:
    return {"width": "container", "height": height}


def _names(field: str) -> Spec:
    """Return a vertical axis of names, in the order of the column `order`."""
    sort = {"field": "order", "op": "min"}
    return {"field": field, "type": "nominal", "sort": sort, "title": None}


def _amount(field: str, title: str, *, axis: Spec) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "axis": axis}


def _scaled(axis: Axis) -> Spec:
    scale = {"domain": [0, axis.most], "nice": False}
    return {"field": axis.field, "type": "quantitative", "title": axis.title, "scale": scale}


def _colour(field: str, colours: Mapping[str, str], legend: Spec | None) -> Spec:
    scale = {"domain": [*colours], "range": [*colours.values()]}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": legend}


def _tooltip(*fields: str, percent: bool = False) -> list[Spec]:
    shown = {"format": ".0%"} if percent else {}
    return [{"field": field, "title": field, **shown} for field in fields]
