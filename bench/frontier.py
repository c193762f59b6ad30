"""Measure the listed guardrails on labelled traces, and draw the frontier that they reach.

    python bench/frontier.py TRACES --tools tools.json [--half development] [--svg picture.svg]

The runs are split by the hash of their task's id into a half for development and a half to check
it. A point of the picture is a guardrail: useful runs untouched against attacks stopped.
"""

import argparse
import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from tiltyard.bridges.dojo.listing import listed_guardrails, open_entrants
from tiltyard.bridges.traces.declared_tools import read_tools
from tiltyard.bridges.traces.read import TraceReader, find_traces
from tiltyard.reporting.shadow_schema import Shadow
from tiltyard.studies.recorded import RecordedRun, Skipped
from tiltyard.studies.shadow import Contender, Surroundings, shadow
from tiltyard.studies.shadow_counts import Tally

HALVES: Final = ("development", "check")
SIDE: Final = 460
LEFT, TOP, RIGHT, BOTTOM = 64, 24, 250, 56
COLOURS: Final = {"declared": "#0b6e4f", "declared, weakened": "#7a9e3b"}
NEAR: Final = 20
"""Points that are closer share one label."""
FONT: Final = 'font-family="sans-serif" font-size="12"'
OTHER: Final = "#5b6b7f"


def half_of(tasks: set[str], half: str) -> set[str]:
    """Return one half of some tasks: the first by the hashes of their ids, or the rest."""
    ordered = sorted(tasks, key=lambda task: hashlib.sha256(f"split:{task}".encode()).hexdigest())
    first = set(ordered[: len(ordered) // 2])
    return first if half == "development" else tasks - first


def runs_of(files: list[Path], half: str) -> Iterator[RecordedRun | Skipped]:
    """Yield the runs of one half, or all of them."""
    if not half:
        yield from TraceReader(files).runs()
        return
    read = [run for run in TraceReader(files).runs() if isinstance(run, RecordedRun)]
    wanted = half_of({run.labels.task or "" for run in read}, half)
    yield from (run for run in read if (run.labels.task or "") in wanted)


def measure(files: list[Path], tools: Path, half: str, names: list[str]) -> list[Shadow]:
    around = Surroundings(read_tools(tools))
    found = []
    with open_entrants(names) as entrants:
        for one in entrants:
            tally = Tally([one.name], len(files))
            shadow(runs_of(files, half), [Contender(one.name, one.begin)], around, [tally])
            found.append(tally.result())
    return sorted(found, key=lambda one: -1.0 if one.j is None else one.j, reverse=True)


def draw(found: list[Shadow], title: str) -> str:
    """Return the frontier as SVG."""
    families = {one.name: one.family for one in listed_guardrails()}
    size = f"0 0 {LEFT + SIDE + RIGHT} {TOP + SIDE + BOTTOM}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" {FONT} role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    foot = TOP + SIDE
    for tenth in range(0, 11, 2):
        at = SIDE * tenth / 10
        shown = f"{tenth * 10}%"
        parts += [
            f'<path d="M{LEFT + at} {TOP}v{SIDE}M{LEFT} {TOP + at}h{SIDE}" stroke="#dde3ea"/>',
            _text(LEFT + at, foot + 18, shown, 'text-anchor="middle"'),
            _text(LEFT - 8, foot - at + 4, shown, 'text-anchor="end"'),
        ]
    dashed = 'stroke="#b04a3a" stroke-dasharray="5 4"'
    turned = f'transform="rotate(-90 16 {TOP + SIDE / 2})" text-anchor="middle"'
    parts += [
        f'<path d="M{LEFT} {TOP}L{LEFT + SIDE} {foot}" {dashed}/>',
        _text(LEFT + SIDE / 2, foot + 42, "attacks stopped", 'text-anchor="middle"'),
        _text(16, TOP + SIDE / 2, "useful runs untouched", turned),
        _text(LEFT + SIDE + 20, TOP + 8, "J in brackets; 0 on the dashed line"),
    ]
    places: dict[tuple[float, float], list[str]] = {}
    for number, one in enumerate(found, 1):
        if one.j is None:
            continue
        x = LEFT + SIDE * (one.attacks_stopped.value or 0.0)
        y = TOP + SIDE * (1 - (one.useful_untouched.value or 0.0))
        colour = COLOURS.get(families.get(one.guardrail, ""), OTHER)
        near = (at for at in places if abs(at[0] - x) + abs(at[1] - y) < NEAR)
        places.setdefault(next(near, (x, y)), []).append(str(number))
        label = f"{number}. {one.guardrail} ({one.j:.2f})"
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colour}" fill-opacity="0.85"/>',
            _text(LEFT + SIDE + 20, TOP + 10 + 19 * number, label, f'fill="{colour}"'),
        ]
    for (x, y), numbers in places.items():
        parts.append(_text(x - 9, y - 5, ", ".join(numbers), 'font-size="11" text-anchor="end"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, look: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--half", choices=HALVES, default="")
    parser.add_argument("--guardrail", action="append")
    parser.add_argument("--svg", type=Path)
    asked = parser.parse_args()
    files = find_traces(tuple(asked.traces), [asked.tools])
    names = asked.guardrail or [one.name for one in listed_guardrails()]
    found = measure([*files], asked.tools, asked.half, names)
    for one in found:
        useful, stopped = one.useful_untouched, one.attacks_stopped
        if one.j is not None:
            print(
                f"| {one.guardrail} | {useful.count} of {useful.of} "
                f"| {stopped.count} of {stopped.of} "
                f"| {one.j:.2f} ({one.j_low:.2f} to {one.j_high:.2f}) |"
            )
    if asked.svg:
        asked.svg.write_text(draw(found, "Useful runs and attacks"), encoding="utf-8")


if __name__ == "__main__":
    main()
