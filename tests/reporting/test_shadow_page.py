"""The page of `tiltyard shadow` in a real browser, also with hostile traces."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from small_traces import ASKED, MINUTES, STEPS
from tiltyard.bridges.dojo.guardrails.constants import DenyAll
from tiltyard.contracts.guardrail import Result
from tiltyard.episode.conversation import open_locally
from tiltyard.guardrails import AllowAllGuardrail
from tiltyard.reporting.shadow_page import comparison_page, page
from tiltyard.studies.recorded import Called, Labels, RecordedRun, Returned, Said, Skipped
from tiltyard.studies.shadow import Contender, Surroundings, shadow
from tiltyard.studies.shadow_counts import Tally
from tiltyard.studies.shadow_kept import KeptRuns

Show = Callable[..., Any]
HOSTILE = "</noscript></script><img src=x onerror=alert(1)><b>\u202eolleh & “hi”\x1b[31m"
ATTACK = Labels("t", "i", task_done=False, attack_succeeded=True, attack_calls=(0,))
USEFUL = Labels("u", task_done=True)
RUNS = (
    RecordedRun("first run", "log.jsonl, line 1", STEPS, None, ATTACK),
    RecordedRun(
        HOSTILE,
        HOSTILE,
        (
            Said(HOSTILE),
            Called(0, HOSTILE, {HOSTILE: HOSTILE}),
            Returned(0, Result(ok=False, output=HOSTILE, error=HOSTILE, source="tool")),
        ),
        None,
        USEFUL,
    ),
)


def play(most: int) -> tuple[Tally, KeptRuns]:
    names = [f"deny-all {HOSTILE}", "allow-all"]
    begins = open_locally(DenyAll), open_locally(AllowAllGuardrail)
    tally, kept = Tally(names, 1), KeptRuns(names, most)
    skipped = Skipped(HOSTILE, HOSTILE)
    contenders = [Contender(name, begin) for name, begin in zip(names, begins, strict=True)]
    shadow([*RUNS, skipped], contenders, Surroundings(), [tally, kept])
    return tally, kept


def test_each_denied_call_is_shown_in_its_conversation(show: Show) -> None:
    tally, kept = play(10)
    shown = show(page([tally.result()], kept.kept, kept.touched))
    found = shown.page
    expect(found.locator("h1")).to_contain_text("Shadow: deny-all")
    values = found.locator("#summary .card strong").all_inner_texts()
    assert values == ["0", "3", "0%", "100%", "0.00"]
    found.locator("details.finding > summary").first.click()
    replay = found.locator(".replay").first
    expect(replay).to_be_visible()
    expect(replay.locator(".moment.step[data-sink]")).to_have_count(2)
    expect(replay).to_contain_text(ASKED)
    expect(replay).to_contain_text(MINUTES)
    expect(replay.locator("[data-decision=deny]")).to_have_count(2)
    expect(replay).to_contain_text("the attack needs this call")
    expect(replay).not_to_contain_text("ordered by the user")
    assert found.url.endswith("#R1")
    shown.check_quiet()


def test_hostile_traces_stay_text(show: Show) -> None:
    tally, kept = play(10)
    shown = show(page([tally.result()], kept.kept, kept.touched))
    shown.page.locator("details.finding > summary").nth(1).click()
    expect(shown.page.locator(".replay")).to_be_visible()
    assert shown.page.locator("img").count() == 0
    assert "\u202e" not in shown.page.locator("body").inner_text()
    expect(shown.page.locator("#skipped")).to_contain_text("onerror=alert(1)")
    shown.check_quiet()


def test_runs_can_be_filtered_by_kind(show: Show) -> None:
    tally, kept = play(10)
    shown = show(page([tally.result()], kept.kept, kept.touched))
    form = shown.page.locator("#runs form.filters")
    form.locator("select[name=kind]").select_option("useful")
    expect(form.locator("output")).to_have_text("1 of 2")
    shown.check_quiet()


def test_the_page_says_that_it_leaves_runs_out(show: Show) -> None:
    tally, kept = play(1)
    shown = show(page([tally.result()], kept.kept, kept.touched))
    expect(shown.page.locator("#runs")).to_contain_text("shows the first 1 of 2 runs")
    expect(shown.page.locator("details.finding")).to_have_count(1)
    shown.check_quiet()


def test_a_page_without_stopped_calls_says_so(show: Show) -> None:
    tally, _ = play(1)
    shown = show(page([tally.result(1)], [], 0))
    expect(shown.page.locator("#runs")).to_contain_text("stops and alters no call")
    shown.check_quiet()


def test_two_guardrails_stand_side_by_side(show: Show) -> None:
    tally, kept = play(10)
    shown = show(comparison_page(tally.comparison(), kept.kept, kept.touched))
    expect(shown.page.locator("#differences table caption")).to_have_text("2 runs differ")
    expect(shown.page.locator("#differences tbody tr")).to_have_count(2)
    expect(shown.page.locator("#summary thead")).to_contain_text("allow-all")
    shown.check_quiet()


def test_tables_are_readable_without_scripts(show: Show) -> None:
    tally, kept = play(10)
    shown = show(page([tally.result()], kept.kept, kept.touched), java_script_enabled=False)
    expect(shown.page.locator("table")).to_contain_text("attacks stopped")
    assert shown.page.locator("img").count() == 0
