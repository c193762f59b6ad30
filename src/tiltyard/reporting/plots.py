"""Plots as data: Vega-Lite specifications, and the rows that they draw.

A specification names columns and nothing else. What a report says comes as rows of a table that is
handed over apart, so that no text of it can be read as a part of the specification.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tiltyard.reporting.page import Plot
from tiltyard.reporting.schema import Place, Point, TrialRow

# The page's own colours: they follow its theme, and a printer's.
ACCENT: Final = "var(--accent)"
BREACH: Final = "var(--bad)"
QUIET: Final = "var(--bar)"

_ROWS_SHOWN: Final = 16
_STEPS_A_LEVEL: Final = 4
_LAST_LEVEL: Final = 7
_ROW_HEIGHT: Final = 26
_IN_ORDER: Final = {"field": "order", "op": "min"}


def bars(title: str, counts: Mapping[str, int], what: str, *, color: str = ACCENT) -> Plot:
    """Draw counts by name, in the order in which they are given."""
    spec = {
        "width": "container",
        "height": {"step": _ROW_HEIGHT},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": _IN_ORDER, "title": None},
            "x": {
                "field": "count",
                "type": "quantitative",
                "title": what,
                "axis": {"tickMinStep": 1, "format": "d", "tickCount": 5},
            },
            "tooltip": [{"field": "name", "title": "name"}, {"field": "count", "title": what}],
        },
        "layer": [
            {"mark": {"type": "bar", "color": color, "height": {"band": 0.6}}},
            {
                "mark": {"type": "text", "align": "left", "dx": 5},
                "encoding": {"text": {"field": "count"}},
            },
        ],
    }
    rows: list[Mapping[str, str | int]] = [
        {"name": name, "count": count, "order": order}
        for order, (name, count) in enumerate(counts.items())
    ]
    return Plot(title, spec, tuple(rows))


def curve(title: str, points: Sequence[Point], field: str, what: str) -> Plot:
    """Draw how one figure of the search grew with its steps."""
    spec = {
        "width": "container",
        "height": 180,
        "mark": {"type": "line", "color": ACCENT, "interpolate": "step-after", "point": False},
        "encoding": {
            "x": {
                "field": "steps",
                "type": "quantitative",
                "title": "steps",
                "axis": {"format": "~s", "tickCount": 5, "grid": False},
            },
            "y": {
                "field": "count",
                "type": "quantitative",
                "title": what,
                "axis": {"tickCount": 4, "format": "~s", "tickMinStep": 1},
            },
        },
    }
    rows = tuple({"steps": point.steps, "count": getattr(point, field)} for point in points)
    return Plot(title, spec, ({"steps": 0, "count": 0}, *rows))


def archive_by_reading(places: Sequence[Place]) -> Plot:
    """Draw the archive by depth and by what had been read."""
    kinds = {place: _listed(place.read) for place in places}
    common = Counter[str]()
    for place, kind in kinds.items():
        common[kind] += place.cells
    shown = {kind for kind, _ in common.most_common(_ROWS_SHOWN)}
    grouped = [(kinds[place] if kinds[place] in shown else "others", place) for place in places]
    return _bubbles("Cells by depth and what was read", grouped, "read")


def archive_by_effect(places: Sequence[Place]) -> Plot:
    """Draw the archive by depth and effect; a cell with several effects counts for each."""
    grouped = [(effect, place) for place in places for effect in place.effects or ("none",)]
    return _bubbles("Cells by depth and effect", grouped, "effect")


def trials_by_operation(trials: Sequence[TrialRow]) -> Plot:
    """Draw of each benign operation how many variants went through, and how many did not."""
    counts = Counter((trial.operation, trial.false_positive) for trial in trials)
    operations = dict.fromkeys(trial.operation for trial in trials)
    rows = tuple(
        {
            "operation": operation,
            "outcome": "false positive" if failed else "went through",
            "trials": counts[operation, failed],
            "order": order,
            "layer": int(not failed),
        }
        for order, operation in enumerate(operations)
        for failed in (True, False)
        if counts[operation, failed]
    )
    spec = {
        "width": "container",
        "height": {"step": _ROW_HEIGHT},
        "mark": {"type": "bar", "height": {"band": 0.6}},
        "encoding": {
            "y": {
                "field": "operation",
                "type": "nominal",
                "sort": _IN_ORDER,
                "title": None,
            },
            "x": {
                "field": "trials",
                "type": "quantitative",
                "title": "benign trials",
                "stack": "zero",
                "axis": {"tickMinStep": 1, "format": "d", "tickCount": 5},
            },
            "order": {"field": "layer"},
            "color": {
                "field": "outcome",
                "type": "nominal",
                "title": None,
                "scale": {"domain": ["false positive", "went through"], "range": [BREACH, QUIET]},
                "legend": {"orient": "top", "symbolType": "square"},
            },
            "tooltip": [
                {"field": "operation", "title": "operation"},
                {"field": "outcome", "title": "outcome"},
                {"field": "trials", "title": "trials"},
            ],
        },
    }
    return Plot("Benign trials by operation", spec, rows)


def _bubbles(title: str, grouped: Sequence[tuple[str, Place]], what: str) -> Plot:
    """Draw circles as large as their groups; a diamond says that a breach ends there."""
    cells, visits, breaches = Counter[Any](), Counter[Any](), Counter[Any]()
    totals = Counter[str]()
    for name, place in grouped:
        key = (place.depth, name)
        cells[key] += place.cells
        visits[key] += place.visits
        breaches[key] += place.breach
        totals[name] += place.cells
    order = {name: position for position, (name, _) in enumerate(totals.most_common())}
    rows = tuple(
        {
            "depth": _steps_of(depth),
            "level": depth,
            what: name,
            "cells": count,
            "visits": visits[depth, name],
            "breach": "yes" if breaches[depth, name] else "no",
            "order": order[name],
        }
        for (depth, name), count in sorted(cells.items(), key=lambda item: str(item[0]))
    )
    position = {
        "x": {
            "field": "depth",
            "type": "ordinal",
            "sort": {"field": "level", "op": "min"},
            "title": "steps taken",
            "axis": {"labelAngle": 0, "labelOverlap": True},
        },
        "y": {
            "field": what,
            "type": "nominal",
            "sort": _IN_ORDER,
            "title": None,
            "axis": {"grid": True},
        },
    }
    spec = {
        "width": "container",
        "height": {"step": _ROW_HEIGHT},
        "encoding": {
            **position,
            "tooltip": [
                {"field": name, "title": name}
                for name in (what, "depth", "cells", "visits", "breach")
            ],
        },
        "layer": [
            {
                "mark": {"type": "circle", "color": ACCENT, "opacity": 0.35},
                "encoding": {
                    "size": {
                        "field": "cells",
                        "type": "quantitative",
                        "scale": {"range": [12, 420], "zero": False},
                        "legend": None,
                    }
                },
            },
            {
                "transform": [{"filter": {"field": "breach", "equal": "yes"}}],
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "filled": True,
                    "color": BREACH,
                    "size": 70,
                    "opacity": 1,
                },
            },
        ],
    }
    return Plot(title, spec, rows, "The larger a circle, the more cells. A diamond: breaches.")


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kinds) or "nothing"


def _steps_of(level: int) -> str:
    first = level * _STEPS_A_LEVEL
    return f"{first}+" if level >= _LAST_LEVEL else f"{first}–{first + _STEPS_A_LEVEL - 1}"
