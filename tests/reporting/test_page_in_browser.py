"""The report's page in a real browser."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import Page, expect

from tiltyard.reporting.report_page import render
from tiltyard.reporting.schema import Report, replayable

Show = Callable[..., Any]


def open_first_finding(page: Page) -> None:
    page.locator("details.finding > summary").first.click()
    expect(page.locator(".replay").first).to_be_visible()


def current(page: Page) -> str:
    return page.locator(".replay .position").first.inner_text()


def test_a_real_report_opens_without_errors(show: Show, page_of_real: str) -> None:
    shown = show(page_of_real)
    expect(shown.page.locator("h1")).to_have_text("submission")
    expect(shown.page.get_by_role("region", name="How the score is calculated")).to_be_visible()
    shown.check_quiet()


def test_using_the_page_makes_no_requests(show: Show, page_of_real: str) -> None:
    shown = show(page_of_real)
    open_first_finding(shown.page)
    for mark in shown.page.locator(".canvas .mark-symbol path").all()[:3]:
        mark.hover(force=True)
    shown.page.get_by_role("button", name="Use dark colours").click()
    shown.check_quiet()


def test_the_cards_show_the_scores_of_the_report(
    show: Show, real: Report, page_of_real: str
) -> None:
    shown = show(page_of_real)
    assert real.offense is not None
    assert real.defense is not None
    values = shown.page.locator("#summary .card strong").all_inner_texts()
    wanted = (real.final_score, real.offense.score, real.defense.score)
    assert [float(value) for value in values] == [
        pytest.approx(score, abs=0.005) for score in wanted
    ]
    expect(shown.page.locator("#summary")).to_contain_text("the budget is quick, not official")
    for digest in (real.run_id, real.digest, real.submission.digest, real.setting.ruleset_digest):
        expect(shown.page.locator("#run")).to_contain_text(digest)


def test_the_breakdown_adds_up(show: Show, page_of_real: str) -> None:
    shown = show(page_of_real)
    lines = shown.page.locator("#score .sum").first.locator("tbody .number").all_inner_texts()
    *parts, raw = map(float, lines)
    assert sum(parts) == raw
    score = shown.page.locator("#score .sum").first.locator("tfoot .number").inner_text()
    assert float(score) == raw / 400 * 1000


def test_the_replay_moves_with_buttons_and_keys(show: Show, page_of_real: str) -> None:
    page = (shown := show(page_of_real)).page
    open_first_finding(page)
    replay = page.locator(".replay").first
    total = replay.locator(".moment").count()
    assert total > 3
    replay.get_by_role("button", name="First").click()
    assert current(page) == f"1 of {total}"
    assert replay.locator(".moment.ahead").count() == total - 1
    expect(replay.get_by_role("button", name="Previous")).to_be_disabled()
    replay.get_by_role("button", name="Next").click()
    assert current(page) == f"2 of {total}"
    expect(replay.locator("[aria-current=step]")).to_have_class(re.compile("step"))
    replay.focus()
    page.keyboard.press("ArrowRight")
    assert current(page) == f"3 of {total}"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert current(page) == f"1 of {total}"
    page.keyboard.press("End")
    assert current(page) == f"{total} of {total}"
    assert replay.locator(".moment.ahead").count() == 0
    expect(replay.get_by_role("button", name="Next")).to_be_disabled()
    page.keyboard.press("Home")
    assert current(page) == f"1 of {total}"
    shown.check_quiet()


def test_the_replay_shows_the_path_from_source_to_sink(
    show: Show, real: Report, page_of_real: str
) -> None:
    assert real.offense is not None
    finding = real.offense.found[0]
    page = show(page_of_real).page
    open_first_finding(page)
    replay = page.locator(".replay").first
    replay.focus()
    page.keyboard.press("Home")
    assert replay.locator(".arrow").count() == 0
    page.keyboard.press("End")
    orders = sum(len(step.because or ()) for step in finding.steps)
    assert orders > 0
    assert replay.locator(".arrow.order").count() == orders
    # A command prints the secret, and the agent posts its output: one hop.
    assert [step.tool for step in finding.steps[1:]] == ["shell.run", "http.post"]
    assert replay.locator(".arrow.secret").count() == 1
    sink = replay.locator(".moment[data-sink]")
    assert sink.count() == sum(step.is_sink for step in finding.steps)
    expect(sink.locator(".badge.sink")).to_have_text("sink")
    expect(sink.locator(".segment[data-secret] .by").first).to_have_text("secret")
    path = [step.index for step in finding.steps if step.on_path or step.is_sink]
    steps = replay.locator(".way button").all_inner_texts()
    assert [int(text.split()[0].lstrip("#")) for text in steps] == path
    replay.locator(".way button").first.click()
    expect(replay.locator("[aria-current=step]")).to_have_attribute("data-index", str(path[0]))


def test_the_replay_opens_at_the_sink_and_shows_the_rest_on_request(
    show: Show, real: Report
) -> None:
    assert real.offense is not None
    first = real.offense.found[0]
    other = structs.replace(
        first.steps[0], index=99, turn=1, tool="fs.list", because=(), on_path=False, output=()
    )
    longer = structs.replace(
        first,
        chain=(*first.chain, "anything else?"),
        answers=(*first.answers, "no"),
        steps=(*first.steps, other),
    )
    offense = structs.replace(real.offense, found=(longer,))
    page = show(render(structs.replace(real, offense=offense))).page
    open_first_finding(page)
    replay = page.locator(".replay").first
    (sink,) = [step.index for step in first.steps if step.is_sink]
    expect(replay.locator("[aria-current=step]")).to_have_attribute("data-index", str(sink))
    expect(replay.locator("[aria-current=step]")).to_be_visible()
    # Visible: the message and the path. Hidden: the answer, and all that follows.
    path = [step for step in first.steps if step.on_path or step.is_sink]
    assert replay.locator(".moment:visible").count() == len(first.chain) + len(path)
    total = replay.locator(".moment").count()
    replay.get_by_role("button", name=f"show all {total}").click()
    assert replay.locator(".moment:visible").count() == total
    expect(replay.get_by_role("button", name="show all")).to_be_hidden()


@pytest.mark.parametrize("kind", ["A", "D", "B"])
def test_an_address_opens_an_entry(show: Show, real: Report, page_of_real: str, kind: str) -> None:
    name = [one.id for one in replayable(real) if one.id.startswith(kind)][-1]
    page = (shown := show(page_of_real)).page
    page.goto(f"{page.url}#{name}")
    page.reload()
    entry = page.locator(f"details#{name}")
    expect(entry).to_have_attribute("open", "")
    expect(entry.locator(".replay")).to_be_attached()
    expect(entry.locator("summary").first).to_be_in_viewport()
    # On the same page, another link opens another entry, even if a filter hides it.
    page.get_by_role("searchbox").first.fill("no finding has these words")
    page.locator(".matrix a", has_text="A1").first.click()
    expect(page.locator("details#A1")).to_have_attribute("open", "")
    expect(page.locator("details#A1 summary").first).to_be_in_viewport()
    shown.check_quiet()


def test_opening_an_entry_puts_its_link_into_the_address(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    page.locator("details#D2 > summary").click()
    expect(page.locator("details#D2 .replay")).to_be_visible()
    assert page.url.endswith("#D2")


def test_findings_can_be_searched(show: Show, real: Report, page_of_real: str) -> None:
    assert real.offense is not None
    page = (shown := show(page_of_real)).page
    offense = page.get_by_role("region", name="Offense")
    # A word that only the result of a call has, and the name of a tool, in any case and order.
    wanted = [
        found.id
        for found in real.offense.found
        if any("keelson" in part.text.lower() for step in found.steps for part in step.output)
        and any(step.tool == "http.post" for step in found.steps)
    ]
    assert 0 < len(wanted) < len(real.offense.found)
    search = offense.get_by_role("searchbox")
    search.fill("HTTP.post  keelson")
    visible = offense.locator(".findings > li:visible .finding-id")
    assert visible.all_inner_texts() == wanted
    search.press("Enter")
    search.fill("")
    assert visible.count() == len(real.offense.found)
    shown.check_quiet()


def test_the_matrix_shows_every_core_found_and_missing(
    show: Show, real: Report, page_of_real: str
) -> None:
    assert real.offense is not None
    matrix = show(page_of_real).page.locator("#offense .matrix")
    cores = {(found.predicate, found.source, found.sink) for found in real.offense.found}
    assert matrix.locator("[data-state=found]").count() == len(cores)
    # By docs/judging.md: 4 exfiltrations, 8 destructive writes, 4 confused deputies and 15 actions
    # of strangers.
    assert matrix.locator("[data-state=empty]").count() == 31 - len(cores)
    ids = matrix.locator("a").all_inner_texts()
    assert sorted(ids) == sorted(found.id for found in real.offense.found)


def test_findings_come_before_plots(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    for name in ("offense", "defense", "benign"):
        section = page.locator(f"#{name}")
        lists = section.locator(".findings-block").bounding_box()
        plot = section.locator("figure.plot").first.bounding_box()
        assert lists is not None
        assert plot is not None
        assert lists["y"] < plot["y"]


def test_only_a_real_problem_is_red(show: Show, real: Report) -> None:
    remark = "#summary .remark >> nth=0"
    page = show(render(real)).page
    expect(page.locator(remark)).to_contain_text("Practice run")
    expect(page.locator(remark)).to_have_attribute("data-tone", "")
    assert real.defense is not None
    odd = structs.replace(real, defense=structs.replace(real.defense, inconsistent=1))
    assert show(render(odd)).page.locator(remark).get_attribute("data-tone") == "bad"


def test_the_date_is_shown(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    expect(page.locator(".subtitle")).to_contain_text("2026-01-31 14:05 UTC")
    expect(page.locator(".subtitle .more")).to_have_count(0)
    expect(page.locator("#run")).to_contain_text("2026-01-31 14:05 UTC")


def test_a_phone_has_a_menu_of_all_sections(show: Show, page_of_real: str) -> None:
    page = show(page_of_real, width=390).page
    links = page.get_by_role("navigation").get_by_role("link")
    assert links.count() == 0
    page.get_by_role("button", name="Sections").click()
    sections = page.locator("main > section").count()
    assert links.count() == sections
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    links.last.click()
    expect(page.locator("#run h2")).to_be_in_viewport()
    assert links.count() == 0


COLLIDING_LABELS = """
() => {
  const found = [];
  for (const axis of document.querySelectorAll(".canvas .role-axis-label")) {
    const shown = [...axis.querySelectorAll("text")].filter(
      (text) => getComputedStyle(text).opacity !== "0",
    );
    const boxes = shown.map((text) => [text.textContent, text.getBoundingClientRect()]);
    const canvas = axis.closest(".canvas").getBoundingClientRect();
    boxes.forEach(([text, box], at) => {
      if (box.left < canvas.left - 1 || box.right > canvas.right + 1) found.push(text);
      for (const [other, next] of boxes.slice(at + 1)) {
        const apart = Math.max(box.left, next.left) - Math.min(box.right, next.right);
        const below = Math.max(box.top, next.top) - Math.min(box.bottom, next.bottom);
        if (apart < 3 && below < -2) found.push(`${text} and ${other}`);
      }
    });
  }
  return found;
}
"""


@pytest.mark.parametrize("width", [360, 500, 900, 1200])
def test_axis_labels_do_not_collide(show: Show, page_of_real: str, width: int) -> None:
    assert show(page_of_real, width=width).page.evaluate(COLLIDING_LABELS) == []


def test_authors_differ_by_more_than_colour(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    open_first_finding(page)
    styles = page.locator(".legend .segment").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).textDecorationLine + ' '"
        " + getComputedStyle(one).textDecorationStyle + ' '"
        " + (getComputedStyle(one).backgroundColor !== 'rgba(0, 0, 0, 0)'))"
    )
    assert len(styles) == len(set(styles)) == 7


def test_findings_can_be_filtered(show: Show, real: Report, page_of_real: str) -> None:
    assert real.offense is not None
    page = show(page_of_real).page
    offense = page.get_by_role("region", name="Offense")
    visible = offense.locator(".findings > li:visible")
    assert visible.count() == len(real.offense.found)
    wanted = real.offense.found[-1].predicate
    offense.get_by_role("combobox", name="predicate").select_option(wanted)
    matching = [found.id for found in real.offense.found if found.predicate == wanted]
    assert 0 < len(matching) < len(real.offense.found)
    assert visible.locator(".finding-id").all_inner_texts() == matching
    expect(offense.locator("output").first).to_have_text(
        f"{len(matching)} of {len(real.offense.found)}"
    )


def test_the_charts_draw_every_mark(show: Show, real: Report, page_of_real: str) -> None:
    assert real.defense is not None
    page = show(page_of_real).page
    marks = {
        figure.locator("figcaption").inner_text(): figure.locator(
            "svg .mark-rect path, svg .mark-line path, svg .mark-symbol path"
        ).count()
        for figure in page.locator("figure.plot").all()
    }
    assert marks["Breaches by predicate"] >= len(real.defense.breaches_by_predicate)
    assert marks["Cells of the search by depth and documents read"] > 20
    assert marks["Cells of the search by depth and effect"] > 20
    assert marks["Cells of the search over steps"] >= 1
    assert marks["Claims over steps"] >= 1
    assert marks["Benign trials by operation"] >= 7
    diamonds = page.locator(
        "figure", has_text="Cells of the search by depth and documents"
    ).locator("svg [fill='var(--bad)']")
    assert diamonds.count() > 0


def test_false_positives_can_be_replayed(show: Show, real: Report, page_of_real: str) -> None:
    assert real.defense is not None
    failed = [trial for trial in real.defense.trials if trial.false_positive]
    page = (shown := show(page_of_real)).page
    trials = page.locator("#benign .findings > li")
    assert trials.locator(".finding-id").all_inner_texts() == [trial.id for trial in failed]
    objected = next(
        trial for trial in failed if any(step.stopped and step.offending for step in trial.steps)
    )
    (stopped,) = [step for step in objected.steps if step.stopped]
    opened = trials.nth(failed.index(objected))
    expect(opened).to_contain_text(objected.tool)
    opened.locator("summary").first.click()
    expect(opened).to_contain_text(objected.reason)
    opened.locator(".replay").focus()
    page.keyboard.press("End")
    expect(opened.locator(".moment[data-sink]")).to_have_attribute("data-index", str(stopped.index))
    expect(opened.locator(".moment[data-sink] .badge.sink")).to_have_text("stopped here")
    marked = opened.locator(".offending .part-name").all_inner_texts()
    assert marked == [*stopped.offending]
    expect(opened.locator(".offending").first).to_contain_text("the guardrail objects to this")
    shown.check_quiet()


def test_the_output_of_the_submission_is_shown(show: Show, real: Report) -> None:
    printed = "first\n<img src=x onerror=window.owned=1>\nlast"
    shown = show(render(structs.replace(real, output={"offense": printed})))
    expect(shown.page.locator("#output pre")).to_have_text(printed)
    expect(shown.page.locator("#output")).to_contain_text("The attack")
    assert shown.page.locator("main img").count() == 0
    shown.check_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(
    show: Show, page_of_real: str, scheme: str
) -> None:
    page = show(page_of_real, color_scheme=scheme).page
    other = {"light": "dark", "dark": "light"}[scheme]

    def paper() -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(re.findall(r"\d+", colour)[0])

    assert (paper() > 128) == (scheme == "light")
    page.get_by_role("button", name=f"Use {other} colours").click()
    assert (paper() > 128) == (other == "light")
    bar = "getComputedStyle(document.querySelector('.canvas .mark-rect path')).fill"
    before = page.evaluate(bar)
    page.get_by_role("button", name=f"Use {scheme} colours").click()
    assert page.evaluate(bar) != before


CONTRAST_PROBLEMS = """
() => {
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = rgb(colour).map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((rgb(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  const isRead = (element) =>
    [...element.childNodes].some(isText) &&
    element.checkVisibility() &&
    !element.closest("svg, .ahead, :disabled");
  const found = new Set();
  for (const element of [...document.querySelectorAll("body *")].filter(isRead)) {
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(`${element.className} ${ratio.toFixed(2)} ${element.textContent}`);
  }
  return [...found];
}
"""
"""Texts with too little contrast to their background (WCAG AA: 4.5)."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(show: Show, page_of_real: str, scheme: str) -> None:
    page = show(page_of_real, color_scheme=scheme).page
    open_first_finding(page)
    page.locator(".replay").first.focus()
    page.keyboard.press("End")
    assert page.evaluate(CONTRAST_PROBLEMS) == []


@pytest.mark.parametrize("width", [390, 768])
def test_it_fits_a_phone(show: Show, page_of_real: str, width: int) -> None:
    page = show(page_of_real, width=width).page
    open_first_finding(page)
    page.locator(".replay").first.focus()
    page.keyboard.press("End")
    for details in page.locator("details.numbers > summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_every_control_and_region_has_a_name(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    open_first_finding(page)
    tree = page.locator("body").aria_snapshot()
    assert "banner" in tree
    assert "main" in tree
    assert 'navigation "Sections"' in tree
    for name in ("Summary", "How the score is calculated", "Offense", "Defense", "The run"):
        assert f'region "{name}"' in tree
    nameless = page.locator("button, select, summary").evaluate_all(
        "(all) => all.filter((one) => !(one.textContent.trim() || one.ariaLabel"
        " || one.labels?.length)).length"
    )
    assert nameless == 0
    ids = page.locator("[id]").evaluate_all("(all) => all.map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_the_keyboard_alone_reaches_a_replay(show: Show, page_of_real: str) -> None:
    page = show(page_of_real).page
    page.locator("details.finding > summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".replay").first).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "replay"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert current(page).startswith("2 of")


def test_print_shows_all_of_an_opened_replay(show: Show, page_of_real: str) -> None:
    page = show(page_of_real, color_scheme="dark").page
    open_first_finding(page)
    page.emulate_media(media="print")
    assert page.locator(".replay .moment-body:visible").count() == page.locator(".moment").count()
    expect(page.get_by_role("navigation")).to_be_hidden()
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert int(re.findall(r"\d+", colour)[0]) > 128


def test_a_restricted_report_shows_scores_and_says_what_it_withholds(
    show: Show, official: Report
) -> None:
    shown = show(render(official))
    expect(shown.page.locator("#summary")).to_contain_text("restricted report of an official run")
    expect(shown.page.locator("#score")).to_contain_text("means over 3 seeds")
    expect(shown.page.locator("#run")).to_contain_text("hidden by the organizer")
    assert shown.page.locator("details.finding").count() == 0
    assert shown.page.locator("figure.plot").count() == 3
    expect(shown.page.locator("#defense")).not_to_contain_text("interactions")
    shown.check_quiet()


def test_a_failed_match_shows_the_reason(show: Show, broken_off: Report) -> None:
    shown = show(render(broken_off))
    cards = shown.page.locator("#summary .card strong").all_inner_texts()
    assert cards == ["none", "not played", "failed"]
    failure = shown.page.locator(".failure")
    for text in (
        "run",
        "raised KeyError",
        "decide http.post",
        "In guardrail.py, line 7",
        "KeyError: nope",
        "second call",
    ):
        expect(failure).to_contain_text(text)
    assert shown.page.locator("section").evaluate_all("(all) => all.map((one) => one.id)") == [
        "summary",
        "failures",
        "run",
    ]
    shown.check_quiet()


def test_a_match_without_findings(show: Show, real: Report) -> None:
    assert real.offense is not None
    assert real.defense is not None
    offense = structs.replace(
        real.offense, found=(), findings=0, findings_by_predicate={}, cores=0, unique_cells=0, raw=0
    )
    defense = structs.replace(
        real.defense,
        found=(),
        breaches=0,
        breaches_by_predicate={},
        false_positives=0,
        trials=(),
        false_positives_by_operation={},
        archive=(),
        curve=(),
    )
    shown = show(render(structs.replace(real, offense=offense, defense=defense, comparable=True)))
    expect(shown.page.locator("#offense")).to_contain_text("Nothing was found.")
    expect(shown.page.locator("#benign")).to_contain_text("Every benign task passed.")
    shown.check_quiet()
