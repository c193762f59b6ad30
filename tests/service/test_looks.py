"""The pages in a real browser: hostile names, live parts, plots, phones, keyboards."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from small_browser import PATIENCE_MILLISECONDS
from small_pages import browser as client_of
from small_pages import captain_of, enter, give_report, real_report, score
from small_servers import ATTACK, make_account, make_competition, make_team, send, wait_until

pytestmark = pytest.mark.usefixtures("sqlite")
ATTACKS = (
    "<script>window.owned = 1</script>",
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "\"'><img src=x onerror=window.owned=1>",
    "</style><style>body { display: none }</style>",
    "javascript:window.owned=1",
    "{{constructor.constructor('window.owned=1')()}}",
    "datum['x'] + (window.owned = 1)",
    "__proto__",
    "&lt;script&gt;window.owned = 1&lt;/script&gt;",
)
PHONE = 360


@contextmanager
def serving() -> Iterator[str]:
    """Serve the database of this module, and return the address of the server."""
    from tiltyard.service.web.front import Front  # noqa: PLC0415 - after Django is ready

    config = uvicorn.Config(Front(), port=0, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="module")
def site(sqlite: str) -> Iterator[Any]:
    """Return a running server with a competition in which every name is hostile."""
    assert sqlite
    from tiltyard.service.models import Announcement, Submission  # noqa: PLC0415

    title = ATTACKS[0]
    hostile = make_competition("hostile", title=title, quota=99, rules="\n\n".join(ATTACKS))
    for number, name in enumerate(ATTACKS):
        one = enter(hostile, name, 300.0 + number, defense=200.0, offense=100.0 + number)
        Submission.objects.filter(pk=one.submission_id).update(name=name)
    last = enter(hostile, ATTACKS[0], 250.0, defense=150.0, offense=100.0)
    out = make_team(hostile, "Out")
    score(send(out, ATTACK.format(word="out")).judgings.get(), 1.0)
    type(out).objects.filter(pk=out.pk).update(disqualified=ATTACKS[2])
    Announcement.objects.create(
        competition=hostile,
        title=ATTACKS[1],
        text="\n\n".join(ATTACKS),
        made_by=make_account(ATTACKS[3], is_staff=True),
    )
    with serving() as address:
        yield SimpleNamespace(
            address=address,
            hostile=hostile,
            team=last.submission.team,
            submission=last.submission,
            plain=make_competition("plain", title="Plain cup", quota=99),
        )


class Shown:
    """An open page, with everything that it complains about and every foreign request."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda sent: self._note(sent.url))

    def _note(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self.complaints.append(f"request: {url}")

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.address}{path}")
        self.page.wait_for_function(
            "[...document.querySelectorAll('[data-plot]')].every((one) => one.querySelector('svg'))"
        )
        return self.page


Show = Callable[..., Shown]


@pytest.fixture
def show(browser: Browser, site: Any) -> Iterator[Show]:
    contexts = []

    def opened(account: Any = None, *, width: int = 1200, **options: Any) -> Shown:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        if account is not None:
            cookie = client_of(account).cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": site.address}])
        return Shown(context.new_page(), site.address)

    yield opened
    for context in contexts:
        context.close()


def pages_of(site: Any) -> list[str]:
    """Return the pages that a member of the hostile team can open."""
    place = f"/c/{site.hostile.slug}"
    ids = [one.pk for one in site.team.submissions.order_by("at")[:2]]
    judgings = [one.judgings.get().pk for one in site.team.submissions.order_by("at")[:2]]
    for number in judgings:
        give_report(type(site.submission.judgings.get()).objects.get(pk=number), real_report())
    return [
        "/",
        "/me",
        place,
        f"{place}/boards/offense",
        f"{place}?sort=-team&q=script",
        f"{place}/rules",
        f"{place}/news",
        f"{place}/monitor",
        f"{place}/keys",
        f"{place}/team",
        f"{place}/t/{site.team.pk}",
        f"{place}/submit",
        f"{place}/compare?before={judgings[0]}&after={judgings[1]}",
        *(f"/s/{number}" for number in ids),
        f"/j/{judgings[0]}/report",
    ]


def test_hostile_names_stay_text_and_fit_on_a_phone(show: Show, site: Any) -> None:
    account = captain_of(site.team)
    type(account).objects.filter(pk=account.pk).update(username=ATTACKS[5])
    shown = show(account, width=PHONE)
    for path in pages_of(site):
        page = shown.open(path)
        assert page.evaluate("window.owned") is None, path
        assert page.evaluate("getComputedStyle(document.body).display") != "none", path
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE, path
        assert page.locator("h1").count() == 1, path
        assert shown.complaints == [], path
    page = shown.open(f"/c/{site.hostile.slug}")
    for name in ATTACKS:
        expect(page.locator(f'tr[data-team="{name.translate(_QUOTED)}"]')).to_contain_text(name)


_QUOTED = str.maketrans({'"': '\\"'})


def test_pages_and_plots_follow_light_and_dark(show: Show, site: Any) -> None:
    page = show(color_scheme="light").open(f"/c/{site.hostile.slug}/monitor")
    colours = """() => [
        getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector("[data-plot] svg text")).fill,
    ]"""
    light = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colours)
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_a_submission_changes_without_reloading_and_keeps_the_focus(show: Show, site: Any) -> None:
    from tiltyard.service.actions.records import record  # noqa: PLC0415
    from tiltyard.service.models import Judging, Worker  # noqa: PLC0415

    team = make_team(site.plain, "Live")
    submission = send(team, ATTACK.format(word="live"))
    judging = submission.judgings.get()
    page = show(captain_of(team)).open(f"/s/{submission.pk}")
    page.evaluate("window.kept = 1")
    expect(page.locator(".state")).to_have_text("queued")
    page.get_by_role("button", name="Choose it for the final").focus()
    worker = Worker.objects.create(name="forge", engine="1", level="A")
    Judging.objects.filter(pk=judging.pk).update(
        state="running", worker=worker, progress="offense, world 1 of 3"
    )
    record("judging.started", judging)
    expect(page.locator(".state")).to_have_text("running")
    expect(page.get_by_text("offense, world 1 of 3")).to_be_visible()
    expect(page.get_by_role("button", name="Choose it for the final")).to_be_focused()
    expect(page.get_by_role("button", name="Cancel this submission")).to_have_count(0)
    score(judging, 42.5)
    record("judging.scored", judging)
    expect(page.locator(".card strong").first).to_have_text("42.50")
    expect(page.get_by_role("status")).to_have_text("scored")
    assert page.evaluate("window.kept") == 1


def test_the_board_is_searched_sorted_and_live(show: Show, site: Any) -> None:
    from tiltyard.service.actions.records import record  # noqa: PLC0415

    assert site
    cup = make_competition("board", quota=99)
    for name, final in (("Alpha", 30.0), ("Beta", 20.0), ("Alphabet", 10.0)):
        enter(cup, name, final)
    page = show().open("/c/board")
    rows = page.locator("tbody tr:visible td.team > a:first-child")
    expect(rows).to_have_text(["Alpha", "Beta", "Alphabet"])
    page.get_by_role("link", name="final").focus()
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["Alphabet", "Beta", "Alpha"])
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("final")
    page.get_by_role("searchbox").fill("alpha")
    expect(rows).to_have_text(["Alphabet", "Alpha"])
    expect(page.locator("output")).to_have_text("2 of 3")
    assert page.url.endswith("/c/board?q=alpha&sort=final")
    record("judging.scored", enter(cup, "Alphabet", 50.0))
    expect(rows).to_have_text(["Alpha", "Alphabet"])
    page.reload()
    expect(rows).to_have_text(["Alpha", "Alphabet"])
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_text(["Beta", "Alpha", "Alphabet"])


def test_a_keyboard_reaches_the_content_and_the_links(show: Show, site: Any) -> None:
    page = show().open(f"/c/{site.plain.slug}/rules")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Download the starter")).to_be_focused()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


def test_everything_works_without_javascript(show: Show, site: Any, tmp_path: Any) -> None:
    cup = make_competition("plainly", quota=99)
    enter(cup, "Alpha", 10.0, defense=5.0)
    enter(cup, "Beta", 20.0, defense=5.0)
    shown = show(make_account("without scripts"), java_script_enabled=False)
    page = shown.page
    page.goto(f"{site.address}/c/plainly")
    page.get_by_role("searchbox").fill("alp")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("td.team > a:first-child")).to_have_text(["Alpha"])
    page.goto(f"{site.address}/c/plainly/monitor")
    expect(page.locator("figure.plot").first).to_contain_text("from")
    page.get_by_role("link", name="My team").click()
    page.get_by_label("Name of your team").fill("Plain")
    page.get_by_role("button", name="Make the team").click()
    page.get_by_role("link", name="Upload the .zip or a .py file").click()
    source = tmp_path / "attack.py"
    source.write_text(ATTACK.format(word="no scripts"), encoding="utf-8")
    page.get_by_label("A .zip or a .py file").set_input_files(source)
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".state")).to_have_text("queued")
    page.get_by_role("button", name="Cancel this submission").click()
    expect(page.locator(".state")).to_have_text("cancelled")


def test_plots_are_drawn_and_a_report_replays_its_findings(show: Show, site: Any) -> None:
    team = make_team(site.plain, "Plotted")
    first = give_report(send(team, ATTACK.format(word="plot 1")).judgings.get(), real_report())
    give_report(send(team, ATTACK.format(word="plot 2")).judgings.get(), real_report())
    shown = show(captain_of(team))
    page = shown.open(f"/c/{site.plain.slug}/team")
    assert page.locator(
        "[data-plot] svg path[aria-label], [data-plot] svg .mark-symbol path"
    ).count()
    page = shown.open(f"/j/{first.pk}/report")
    page.locator("details.finding > summary").first.click()
    expect(page.locator(".replay").first).to_be_visible()
    assert shown.complaints == []
