"""The page of the yardstick in a real browser and its picture, also with hostile names."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

from msgspec import structs
from playwright.sync_api import expect

from tiltyard.reporting.dojo_page import frontier, page
from tiltyard.reporting.dojo_picture import picture
from tiltyard.reporting.dojo_schema import (
    Concordance,
    Dojo,
    GuardrailFigures,
    Share,
    SuiteFigures,
)

Show = Callable[..., Any]
HOSTILE = "</noscript></script><img src=x onerror=alert(1)><b>\u202eolleh & “hi”"


def figures(name: str, untouched: int, breached: int) -> GuardrailFigures:
    share = (untouched - breached) / 200 if untouched > breached else 0.0
    return GuardrailFigures(
        name=name,
        family="family",
        pairs=200,
        solved=untouched,
        untouched=untouched,
        breached=breached,
        share=share,
        low=share,
        high=1.0,
        effect=Share(share, 0.0, 1.0, 100),
        alone_tasks=16,
        alone_held=8,
        suites=(SuiteFigures("banking", 200, untouched, untouched, breached, share),),
    )


def found(*guardrails: GuardrailFigures) -> Dojo:
    return Dojo(
        agentdojo="0",
        benchmark="v0",
        suites=("banking",),
        tasks=16,
        effect_tasks=11,
        hijacks=210,
        pairs=200,
        guardrails=guardrails,
        concordance=Concordance(0.9, 0.8, 1.0, 12, 5),
    )


def test_the_frontier_has_the_guardrails_that_none_beats() -> None:
    listed = [
        figures("safe", 50, 0),
        figures("useful", 200, 150),
        figures("good", 150, 10),
        figures("as good", 150, 10),
        figures("worse than good", 149, 10),
        figures("less safe than good", 150, 11),
    ]
    assert frontier(listed) == {"safe", "useful", "good", "as good"}


def test_every_chart_draws_hostile_names_without_errors(show: Show) -> None:
    shown = show(page(found(figures(HOSTILE, 180, 10), figures("other", 100, 90))))
    expect(shown.page.locator(".canvas")).to_have_count(2)
    expect(shown.page.locator("img")).to_have_count(0)
    # A point for each guardrail, and the rectangle of the goal.
    plot = shown.page.locator(".canvas").first
    expect(plot.locator(".mark-symbol.role-mark path")).to_have_count(2)
    expect(plot.locator(".mark-rect.role-mark path")).to_have_count(1)
    expect(shown.page.get_by_text("0.85 (0.85–1.00)").first).to_be_visible()
    shown.check_quiet()


HALVES = {"near": ("banking",), "far": ("slack", "workspace")}


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - we drew it


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in parsed(svg).iter() if one.tag.endswith("text")]


def test_each_half_has_a_panel_with_every_guardrail() -> None:
    far = SuiteFigures("slack", 100, 90, 90, 1, 0.9)
    listed = [
        structs.replace(one, suites=(*one.suites, far))
        for one in (figures("safe", 50, 0), figures("useful", 200, 150))
    ]
    shown = texts(picture(structs.replace(found(*listed), suites=("banking", "slack")), HALVES))
    assert "banking (near): 200 pairs" in shown
    assert "slack (far): 100 pairs" in shown
    assert shown.count("safe") == 1
    assert shown.count("useful") == 1
    assert "safe, useful" in shown


def test_a_half_that_was_not_played_is_left_out() -> None:
    svg = picture(found(figures("safe", 50, 0)), HALVES)
    assert "far" not in " ".join(texts(svg))


def test_a_point_stands_where_its_counts_say() -> None:
    svg = parsed(picture(found(figures("one", 50, 150)), HALVES))
    (dot,) = [one for one in svg.iter() if one.tag.endswith("circle")]
    # The panel is 400 wide and high, and begins at (52, 44).
    assert float(dot.get("cx", "")) == 52 + 400 * 150 / 200
    assert float(dot.get("cy", "")) == 44 + 400 * (1 - 50 / 200)


def test_names_stay_text() -> None:
    svg = picture(found(figures(HOSTILE, 50, 0)), HALVES)
    tags = {one.tag.rpartition("}")[2] for one in parsed(svg).iter()}
    assert tags == {"svg", "rect", "path", "text", "circle"}
