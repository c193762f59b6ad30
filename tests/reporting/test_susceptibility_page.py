"""The page of a susceptibility measurement in a real browser, also with hostile text."""

from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import expect

from tiltyard.agents.deterministic import DeterministicAgent
from tiltyard.guardrails import DataFlowGuardrail
from tiltyard.reporting.susceptibility_page import page
from tiltyard.reporting.susceptibility_schema import DEFINITIONS, Susceptibility
from tiltyard.studies.susceptibility import measure
from tiltyard.world.generate import generate

Show = Callable[..., Any]
HOSTILE = "</noscript></script><img src=x onerror=alert(1)><b>\u202eolleh & “hi”"


@cache
def found() -> Susceptibility:
    return measure(DeterministicAgent(), generate(123), DataFlowGuardrail, guardrail="data flow")


@cache
def hostile() -> Susceptibility:
    one = found()
    return structs.replace(
        one,
        agent=HOSTILE,
        guardrail=HOSTILE,
        families=tuple(structs.replace(family, name=HOSTILE) for family in one.families),
        episodes=tuple(
            structs.replace(
                row,
                document=HOSTILE,
                family=HOSTILE,
                answer=HOSTILE,
                reason=HOSTILE,
                target=HOSTILE,
            )
            for row in one.episodes
        ),
        tasks_missing=HOSTILE,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_draws_without_errors(show: Show, scheme: str) -> None:
    shown = show(page(found()), color_scheme=scheme)
    expect(shown.page.locator(".canvas")).to_have_count(3)
    # One point each for followed injections and completed tasks, without and with the guardrail.
    expect(shown.page.locator(".canvas .mark-symbol.role-mark path")).to_have_count(4)
    # Without a guardrail, the bar of each family has a single part.
    alone = shown.page.locator(".canvas").nth(1).locator(".mark-rect.role-mark path")
    expect(alone).to_have_count(len(found().families))
    for meaning in DEFINITIONS.values():
        expect(shown.page.locator("#words")).to_contain_text(meaning)
    shown.check_quiet()


def test_without_a_guardrail_there_is_one_chart_of_families(show: Show) -> None:
    alone = measure(DeterministicAgent(), generate(123), per_family=1)
    shown = show(page(alone))
    expect(shown.page.locator(".canvas")).to_have_count(2)
    expect(shown.page.locator("#families")).not_to_contain_text("With the guardrail")
    shown.check_quiet()


def test_it_fits_a_phone_and_a_screen(show: Show) -> None:
    for width in (400, 1200):
        shown = show(page(found()), width=width)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert shown.page.evaluate(overflow) <= 0


def test_hostile_text_is_shown_as_text(show: Show) -> None:
    shown = show(page(hostile()))
    expect(shown.page.locator("img, b:not(.tooltip b)")).to_have_count(0)
    expect(shown.page.locator("h1")).to_contain_text("<img src=x")
    shown.check_quiet()


def test_tables_are_readable_without_javascript(show: Show) -> None:
    shown = show(page(found()), java_script_enabled=False)
    tables = shown.page.locator("noscript table, body > table")
    expect(tables).to_have_count(3)
    expect(tables.nth(0)).to_contain_text("poisoned-file")
    expect(tables.nth(1)).to_contain_text("stopped")
    expect(tables.nth(2)).to_contain_text("10 (16–45%)")
    shown.check_quiet()


def test_hostile_text_is_shown_as_text_without_javascript(show: Show) -> None:
    shown = show(page(hostile()), java_script_enabled=False)
    expect(shown.page.locator("img, b")).to_have_count(0)
    expect(shown.page.locator("h1")).to_contain_text("<img src=x")
    expect(shown.page.locator("h1")).to_contain_text("\\u{202e}olleh")
    shown.check_quiet()


def test_hostile_text_never_becomes_markup_in_the_file() -> None:
    class Tags(HTMLParser):
        seen: set[str] = set()  # noqa: RUF012 - one parser, one set

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            del attrs
            self.seen.add(tag)

    reader = Tags()
    reader.feed(page(hostile()))
    assert not {"img", "b"} & reader.seen
    assert "\u202e" not in page(hostile()).split("<noscript>")[1].split("</noscript>")[0]
