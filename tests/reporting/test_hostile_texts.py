"""Every text in a report is hostile: the page shows it, and runs no part of it.

The tests put each attack into every string of a real report, including names in tables.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import structs
from playwright.sync_api import expect

from tiltyard.reporting.finding_schema import Segment
from tiltyard.reporting.page import Card, Cards, Section, render_page
from tiltyard.reporting.report_page import render
from tiltyard.reporting.schema import Report, Understood

Show = Callable[..., Any]

ATTACKS = {
    "script": "<script>window.owned = 1</script>",
    "end of script": "</script><script>window.owned = 1</script>",
    "comment": "<!--<script>window.owned = 1",
    "handler": "<img src=x onerror='window.owned = 1'><svg onload='window.owned = 1'>",
    "quotes": "\"'><img src=x onerror=window.owned=1>",
    "style": "</style><style>body { display: none }</style>",
    "css": "red; background: url(https://evil.example/x)} body{display:none}",
    "address": "javascript:window.owned=1",
    "frame": "<iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
    "link": "<meta http-equiv=refresh content='0;url=https://evil.example'><base href=//evil>",
    "template": "{{constructor.constructor('window.owned=1')()}} ${window.owned=1}",
    "vega": "datum['x'] + (window.owned = 1)",
    "signal": '{"signal": "warn(window.owned = 1)"}',
    "prototype": "__proto__",
    "constructor": "constructor",
    "entities": "&lt;script&gt;window.owned = 1&lt;/script&gt; &amp; &#x3c;b>",
    "lines": "one\u2028window.owned = 1\u2029//",
}


def filled(report: Report, text: str) -> Report:
    """Return a report with `text` in every string.

    Except the tracks and the kinds of tasks: `Report` accepts only the names that it knows.
    """

    def swap(value: Any) -> Any:
        match value:
            case "offense" | "defense" | "ordinary" | "long" | "injected":
                return value
            case str():
                return text
            case list() | tuple():
                return [swap(item) for item in value]
            case dict():
                return {key: swap(item) for key, item in value.items()}
            case _:
                return value

    plain = swap(msgspec.to_builtins(report))
    for part, name in (
        ("offense", "findings_by_predicate"),
        ("offense", "refused"),
        ("defense", "breaches_by_predicate"),
        ("defense", "false_positives_by_operation"),
    ):
        plain[part][name] = {text: 3}
    plain["submission"]["files"] = {text: 10}
    plain["seconds"] = {text: 1.5}
    for finding in plain["offense"]["found"]:
        for step in finding["steps"]:
            step["args"] = {text: next(iter(step["args"].values()))}
    return msgspec.convert(plain, Report)


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_does_not_run(show: Show, real: Report, attack: str) -> None:
    text = ATTACKS[attack]
    shown = show(render(filled(real, text)))
    page = shown.page
    page.locator("details.finding > summary").first.click()
    page.locator(".replay").first.focus()
    page.keyboard.press("End")
    page.locator("details.numbers > summary").first.click()
    assert page.evaluate("window.owned") is None
    assert page.evaluate("Object.prototype.owned") is None
    visible = re.sub("[\u2028\u2029]", lambda match: f"\\u{{{ord(match[0]):04x}}}", text)
    expect(page.locator("h1")).to_have_text(visible)
    expect(page.locator(".replay .words").first).to_contain_text(visible)
    assert page.locator("main script, main img, main iframe, main style, main meta").count() == 0
    expect(page.locator("body")).to_be_visible()
    shown.check_quiet()


@pytest.mark.parametrize("text", ATTACKS.values())
def test_embedded_text_contains_no_html(real: Report, text: str) -> None:
    page = render(filled(real, text))
    assert page.count("<script") == page.count("</script>")
    start = page.index('<script type="application/json"')
    embedded = page[page.index(">", start) + 1 : page.index("</script>", start)]
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert text in str(msgspec.json.decode(embedded)["title"])


def test_the_policy_allows_only_the_scripts_of_the_page() -> None:
    page = render_page("title", (Section("only", "Only", (Cards((Card("one", "1"),)),)),))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    assert rules["script-src"].count("sha256-") == page.count("<script>")
    assert rules["style-src"].count("sha256-") == page.count("<style>")
    assert not re.search(r"\son\w+=|javascript:|https?://", page.partition("<style>")[0])


def test_the_policy_stops_a_foreign_script(show: Show, page_of_real: str) -> None:
    """The second line of defense: text that became markup would still not run."""
    broken = page_of_real.replace("</body>", "<script>window.owned = 1</script></body>")
    shown = show(broken)
    assert shown.page.evaluate("window.owned") is None
    assert "Content Security Policy" in " ".join(shown.complaints)


def with_first_output(report: Report, text: str) -> Report:
    assert report.offense is not None
    finding = report.offense.found[0]
    step = structs.replace(finding.steps[0], output=(Segment(text, "web", untrusted=True),))
    finding = structs.replace(finding, steps=(step, *finding.steps[1:]))
    return structs.replace(report, offense=structs.replace(report.offense, found=(finding,)))


def first_output(show: Show, report: Report) -> Any:
    page = show(render(report), width=390).page
    page.locator("details.finding > summary").first.click()
    page.locator(".replay").first.focus()
    page.keyboard.press("End")
    return page.locator(".moment.step").first.locator(".part", has_text="result").locator(".words")


def test_invisible_characters_are_spelled_out(show: Show, real: Report) -> None:
    hidden = (
        "\u202e\u2066\u200b\u200f\ufeff\x00\x1b\x7f\x85\u2800\U000e0041\u3164\u00ad\ue000\ufe0f"
    )
    text = "pay" + "-".join(hidden) + "load"
    words = first_output(show, with_first_output(real, text))
    spelled = "-".join(f"\\u{{{ord(character):04x}}}" for character in hidden)
    expect(words).to_contain_text(f"pay{spelled}load")
    expect(words.locator(".escape")).to_have_count(len(hidden))


def test_a_long_text_is_shown_in_parts(show: Show, real: Report) -> None:
    text = "x" * 1_000_000
    words = first_output(show, with_first_output(real, text))
    page = words.page
    assert len(words.inner_text()) < 1_000
    more = words.get_by_role("button", name="show more")
    more.click()
    assert 5_000 < len(words.inner_text()) < 10_000
    while more.count():
        more.click()
    assert words.inner_text().count("x") == len(text)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_long_words_and_combining_marks_fit_the_page(show: Show, real: Report) -> None:
    text = "W" * 500 + " " + "e\u0301\u0302\u0303" * 60 + " \u05d0\u05d1\u05d2 right to left"
    report = filled(real, text)
    page = show(render(report), width=390).page
    page.locator("details.finding > summary").first.click()
    page.keyboard.press("End")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_message_that_the_agent_did_not_understand_is_printable(real: Report) -> None:
    assert real.offense is not None
    heard = Understood(2, 1, "hello \u202e\x1b[31m there")
    page = render(structs.replace(real, offense=structs.replace(real.offense, understood=heard)))
    assert r"took this one for prose: hello \\u202e\\x1b[31m there" in page
    assert "\u202e" not in page


def test_a_restricted_report_counts_no_findings(official: Report) -> None:
    page = render(official)
    assert "6.67 cores, 9.33 cells" in page
    assert "0 findings" not in page
    assert "candidates are totals" not in page
