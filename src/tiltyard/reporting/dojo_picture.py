"""The frontier as a picture for documents: untouched against breached, as SVG.

Names of guardrails are hostile.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

from msgspec import Struct

from tiltyard.foundation.printable import printable
from tiltyard.reporting.dojo_page import GOAL_BREACHED, GOAL_SHARE
from tiltyard.reporting.dojo_schema import Dojo, GuardrailFigures

_SIDE, _LEFT, _TOP, _GAP, _BOTTOM = 400, 52, 44, 76, 46
_LINE: Final = 12
"""The height of a label."""
_NEAR: Final = 0.004
"""Points that are nearer than this share one label."""
_INK, _MUTED, _GRID, _ACCENT, _GOOD = "#1f2430", "#667085", "#e4e7ec", "#3056d3", "#2e7d4f"
_MAX_NAME: Final = 40


class Point(Struct, frozen=True):
    """Guardrails that fall on one place."""

    names: tuple[str, ...]
    breached: float
    untouched: float
    is_best: bool
    """Whether no other guardrail beats these in both respects."""


class Panel(Struct, frozen=True):
    """One half of the suites."""

    title: str
    pairs: int
    points: tuple[Point, ...]


def picture(found: Dojo, halves: Mapping[str, Sequence[str]]) -> str:
    """Return an SVG with one panel for each half of the suites that was played.

    `halves` has the suites of each half, by its name.
    """
    panels = [*_panels(found, halves)]
    width = len(panels) * (_LEFT + _SIDE + _GAP)
    height = _TOP + _SIDE + _BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            'aria-label="Share of pairs untouched against share of pairs breached"',
            'font-family="Helvetica, Arial, sans-serif" font-size="10">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
            *(
                line
                for number, panel in enumerate(panels)
                for line in _draw_panel(panel, number * (_LEFT + _SIDE + _GAP))
            ),
            "</svg>\n",
        ]
    )


def _panels(found: Dojo, halves: Mapping[str, Sequence[str]]) -> Iterator[Panel]:
    for title, names in halves.items():
        suites = [one for one in found.suites if one in names]
        if suites and found.guardrails:
            counts = [_counts(one, suites) for one in found.guardrails]
            pairs = max(1, counts[0][2])
            rows = [
                (one.name, breached / pairs, untouched / pairs)
                for one, (untouched, breached, _) in zip(found.guardrails, counts, strict=True)
            ]
            label = f"{', '.join(suites)} ({title}): {pairs} pairs"
            yield Panel(label, pairs, tuple(_points(rows)))


def _counts(one: GuardrailFigures, suites: Sequence[str]) -> tuple[int, int, int]:
    """Return how many pairs of some suites are untouched, breached and live."""
    parts = [part for part in one.suites if part.suite in suites]
    return (
        sum(part.untouched for part in parts),
        sum(part.breached for part in parts),
        sum(part.pairs for part in parts),
    )


def _points(rows: Sequence[tuple[str, float, float]]) -> Iterator[Point]:
    places: dict[tuple[float, float], list[str]] = {}
    for name, breached, untouched in sorted(rows, key=lambda row: (row[1], -row[2], row[0])):
        near = (
            place
            for place in places
            if abs(place[0] - breached) < _NEAR and abs(place[1] - untouched) < _NEAR
        )
        places.setdefault(next(near, (breached, untouched)), []).append(name)
    for (breached, untouched), names in places.items():
        is_beaten = any(
            other[0] <= breached and other[1] >= untouched and other != (breached, untouched)
            for other in places
        )
        yield Point(tuple(names), breached, untouched, not is_beaten)


def _draw_panel(panel: Panel, left: int) -> Iterator[str]:
    x, y = left + _LEFT, _TOP
    yield f'<text x="{x}" y="{y - 18}" font-size="13" fill="{_INK}">{escape(panel.title)}</text>'
    for step in range(6):
        at = step / 5
        across, down = x + at * _SIDE, y + (1 - at) * _SIDE
        yield f'<path d="M{x} {down:.1f}h{_SIDE}M{across:.1f} {y}v{_SIDE}" stroke="{_GRID}"/>'
        yield _label(x - 6, down + 3, f"{at:.1f}", "end", _MUTED)
        yield _label(across, y + _SIDE + 14, f"{at:.1f}", "middle", _MUTED)
    yield (
        f'<rect x="{x}" y="{y}" width="{GOAL_BREACHED * _SIDE:.1f}" '
        f'height="{(1 - GOAL_SHARE) * _SIDE:.1f}" fill="{_GOOD}" opacity="0.25"/>'
    )
    yield _label(x + _SIDE / 2, y + _SIDE + 32, "share of pairs breached", "middle", _INK)
    turned = f'transform="rotate(-90 {x - 34} {y + _SIDE / 2:.1f})"'
    yield (
        f'<text x="{x - 34}" y="{y + _SIDE / 2:.1f}" text-anchor="middle" fill="{_INK}" {turned}>'
        "share of pairs untouched</text>"
    )
    yield from _draw_points(panel.points, x, y)


def _draw_points(points: Sequence[Point], x: int, y: int) -> Iterator[str]:
    """Draw points and their names. A name that would cover another one moves down."""
    taken: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda one: (-one.untouched, one.breached)):
        across, down = x + point.breached * _SIDE, y + (1 - point.untouched) * _SIDE
        colour = _ACCENT if point.is_best else _MUTED
        name = _name(point.names)
        wide = len(name) * 5.2
        leftwards = point.breached > 1 / 2
        start = across - 8 - wide if leftwards else across + 8
        at = down + 3
        while any(
            abs(at - other) < _LINE and start < right and first < start + wide
            for first, right, other in taken
        ):
            at += 1
        taken.append((start, start + wide, at))
        bend = f"M{across:.1f} {down:.1f}L{across + (-6 if leftwards else 6):.1f} {at - 3:.1f}"
        yield f'<path d="{bend}" stroke="{colour}" stroke-width="0.6"/>'
        yield f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3.5" fill="{colour}"/>'
        anchor = "end" if leftwards else "start"
        yield _label(across + (-8 if leftwards else 8), at, name, anchor, colour)


def _name(names: Sequence[str]) -> str:
    shown = [printable(name, limit=_MAX_NAME) for name in names]
    more = len(shown) - 2
    return ", ".join(shown[:2]) + (f" and {more} more" if more > 0 else "")


def _label(x: float, y: float, text: str, anchor: str, colour: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
