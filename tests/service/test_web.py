"""The web side as a browser and a program see it: through the front, with Django behind it."""

import asyncio
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from small_servers import ATTACK, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(10_000))
PASSWORD, WRONG = "correct horse battery", "wrong"
HOST = (b"host", b"127.0.0.1:8080")


class Answer:
    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = b""

    def header(self, name: str) -> str:
        return next((value for one, value in self.headers if one == name), "")

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Sends requests to the front, and keeps cookies."""

    def __init__(self, front: Any) -> None:
        self.front = front
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, body: bytes = b"", **headers: str) -> Answer:
        return self.ask("POST", path, body, headers)

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        if method == "POST":
            sent.setdefault(b"content-length", b"%d" % len(body))
        if self.cookies:
            sent[b"cookie"] = "; ".join(f"{n}={v}" for n, v in self.cookies.items()).encode()
        answer = asyncio.run(_call(self.front, method, path, [HOST, *sent.items()], body))
        for name, value in answer.headers:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return answer

    def fill(self, page: str, target: str = "", **fields: str) -> Answer:
        """Send the form of a page, with its CSRF token."""
        body = urlencode({"csrfmiddlewaretoken": self.token(page), **fields}).encode()
        kind = "application/x-www-form-urlencoded"
        return self.post(target or page, body, content_type=kind)

    def token(self, page: str) -> str:
        found = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', self.get(page).text)
        assert found is not None, page
        return found[1]

    def upload(self, slug: str, name: str, content: bytes, **fields: str) -> Answer:
        fields["csrfmiddlewaretoken"] = self.token(f"/c/{slug}/submit")
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in fields.items()
        ]
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), content, b"\r\n--x--\r\n"])
        return self.post(f"/c/{slug}/submit", body, content_type="multipart/form-data; boundary=x")


async def _call(front: Any, method: str, path: str, headers: Any, body: bytes) -> Answer:
    answer = Answer()
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8080),
    }
    rest = [body[at : at + 65_536] for at in range(0, len(body), 65_536)] or [b""]

    async def receive() -> Any:
        if not rest:
            return {"type": "http.disconnect"}
        chunk = rest.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(rest)}

    async def take(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = [(n.decode().lower(), v.decode()) for n, v in message["headers"]]
        else:
            answer.body += message.get("body", b"")

    await front(scope, receive, take)
    return answer


@pytest.fixture(scope="module")
def front(sqlite: str) -> Any:
    assert sqlite
    from tiltyard.service.web.front import Front  # noqa: PLC0415 - after Django is ready

    return Front()


@pytest.fixture
def browser(front: Any) -> Browser:
    return Browser(front)


@pytest.fixture
def member(browser: Browser) -> Browser:
    """Return a browser that is signed in. Signing up by page takes a slow password hash."""
    return sign_in(browser, make_account(f"member{next(_names)}"))


def sign_in(browser: Browser, account: Any) -> Browser:
    from django.test import Client  # noqa: PLC0415

    client = Client()
    client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    browser.cookies["sessionid"] = client.cookies["sessionid"].value
    return browser


@pytest.fixture
def competition() -> Any:
    return make_competition(f"w{next(_names)}", quota=3)


def packed(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.py", text)
    return made.getvalue()


def test_a_competitor_signs_up_uploads_and_sees_the_state(
    browser: Browser, competition: Any
) -> None:
    slug = competition.slug
    asked = browser.get(f"/c/{slug}/submit")
    assert (asked.status, asked.header("location")) == (302, f"/login?next=%2Fc%2F{slug}%2Fsubmit")
    done = browser.fill("/signup", username="alice", password=PASSWORD)
    assert (done.status, done.header("location")) == (302, "/me")
    before = browser.cookies["sessionid"]
    sent = browser.upload(slug, "attack.py", ATTACK.format(word="hi").encode(), team="<b>Bold</b>")
    assert sent.status == 302
    page = browser.get(sent.header("location")).text
    assert "Next in the queue" in page or "before it in the queue" in page
    assert "<b>Bold" not in page
    assert "&lt;b&gt;Bold&lt;/b&gt;" in page
    assert "2 of 3 submissions left" in browser.get("/me").text
    cancelled = browser.fill(sent.header("location"), f"{sent.header('location')}/cancel")
    assert cancelled.status == 302
    assert "3 of 3 submissions left" in browser.get("/me").text
    browser.fill("/me", "/logout")
    assert browser.get("/me").status == 302
    again = browser.fill("/login", username="alice", password=PASSWORD)
    assert again.status == 302
    assert browser.cookies["sessionid"] != before, "a new session at every log-in"


def test_a_form_without_our_token_changes_nothing(member: Browser, competition: Any) -> None:
    body = urlencode({"name": "x"}).encode()
    kind = "application/x-www-form-urlencoded"
    assert member.post("/me/tokens", body, content_type=kind).status == 403
    target = f"/api/v1/competitions/{competition.slug}/submit?name=attack.py"
    refused = member.post(target, ATTACK.encode(), content_type="application/octet-stream")
    assert refused.status == 403
    assert not competition.submissions.exists()


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_never_leads_to_another_server(
    browser: Browser, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiltyard.service.web import pages  # noqa: PLC0415

    account = make_account(f"r{next(_names)}")
    monkeypatch.setattr(pages, "authenticate", lambda *_, **__: account)
    monkeypatch.setattr(account, "backend", pages.__name__, raising=False)
    monkeypatch.setattr(pages, "login", lambda *_: None)
    done = browser.fill("/login", username="x", password=WRONG, next=target)
    assert (done.status, done.header("location")) == (302, "/me")


def test_log_in_is_limited(browser: Browser) -> None:
    make_account("victim")
    from django.conf import settings  # noqa: PLC0415

    for _ in range(settings.AXES_FAILURE_LIMIT):
        assert browser.fill("/login", username="victim", password=WRONG).status in (403, 429)
    locked = browser.fill("/login", username="victim", password=WRONG)
    assert locked.status == 429


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("attack.py", b"x = 1", "AttackAlgorithm"),
        ("a.exe", b"MZ", "neither a directory nor a .py or .zip file"),
        ("s.zip", b"PK", "it is not a zip archive"),
        ("bomb.zip", b"", "more than 100 times its packed size"),
    ],
)
def test_a_bad_upload_is_refused_with_the_words_of_validate(
    member: Browser, competition: Any, name: str, content: bytes, words: str
) -> None:
    if name == "bomb.zip":
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("attack.py", b"#" * (4 << 20))
        content = made.getvalue()
    done = member.upload(competition.slug, name, content)
    assert done.status == 422
    assert words in done.text
    assert "/tmp/" not in done.text  # noqa: S108
    assert not competition.submissions.exists()


def test_an_upload_that_is_too_large_is_refused_while_it_arrives(
    browser: Browser, competition: Any
) -> None:
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415
    from tiltyard.submissions import LIMITS  # noqa: PLC0415
    from tiltyard.submissions.names import too_large  # noqa: PLC0415

    token = make_token(make_account(f"t{next(_names)}"), "x").secret
    target = f"/api/v1/competitions/{competition.slug}/submit?name=big.zip"
    expected = str(too_large("big.zip", LIMITS.archive_bytes))
    length = LIMITS.archive_bytes + 1
    declared = browser.post(
        target, b"x", content_length=str(length), authorization=f"Bearer {token}"
    )
    assert (declared.status, declared.data["error"]) == (413, expected)
    # A client that lies about the length is cut off, too.
    lied = browser.post(target, b"x" * length, content_length="10", authorization=f"Bearer {token}")
    assert (lied.status, lied.data["error"]) == (413, expected)
    assert browser.post("/login", b"x" * (2 << 20)).status == 413
    chunked = browser.ask("PUT", target, b"x", {"transfer_encoding": "chunked"})
    assert chunked.status == 411


def test_a_program_submits_with_a_token_and_its_scopes(browser: Browser, competition: Any) -> None:
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415

    account = make_account(f"p{next(_names)}")
    reading = make_token(account, "r", ("read",)).secret
    writing = make_token(account, "w").secret
    target = f"/api/v1/competitions/{competition.slug}/submit?name=mine.zip"
    body = packed(attack=ATTACK.format(word="api"))
    assert browser.post(target, body).status == 403
    assert browser.post(target, body, authorization="Bearer nonsense").status == 401
    refused = browser.post(target, body, authorization=f"Bearer {reading}")
    assert (refused.status, refused.data["error"]) == (403, "This token lacks the scope 'submit'.")
    first = browser.post(target, body, authorization=f"Bearer {writing}")
    assert (first.status, first.data["new"], first.data["quota"]["left"]) == (201, True, 2)
    again = browser.post(target, body, authorization=f"Bearer {writing}")
    assert (again.status, again.data["new"], again.data["quota"]["left"]) == (200, False, 2)
    assert again.data["submission"]["id"] == first.data["submission"]["id"]
    number = first.data["submission"]["id"]
    seen = browser.get(f"/api/v1/submissions/{number}", authorization=f"Bearer {reading}")
    assert seen.data["judgings"][0]["state"] == "queued"
    stranger = make_token(make_account(f"p{next(_names)}"), "s").secret
    hidden = browser.get(f"/api/v1/submissions/{number}", authorization=f"Bearer {stranger}")
    assert hidden.status == 404
    assert browser.get(f"/api/v1/submissions/{number}").status == 401
    mine = browser.get("/api/v1/me", authorization=f"Bearer {reading}").data
    assert mine["teams"][0]["competition"] == competition.slug


def test_the_description_names_every_route_and_type_of_the_api(browser: Browser) -> None:
    from tiltyard.service.web.api import ROUTES  # noqa: PLC0415

    described = browser.get("/api/v1/openapi.json").data
    listed = {
        (re.sub(r"\{(\w+)\}", "", path), method.upper())
        for path, methods in described["paths"].items()
        for method in methods
    }
    expected = {
        ("/" + re.sub(r"<\w+:\w+>", "", route.path), method)
        for route in ROUTES
        for method in route.methods
        if route.returns is not dict
    }
    assert listed == expected
    references = {*re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described))}
    assert references <= {*described["components"]["schemas"]}


def test_the_board_is_rendered_once_for_all_who_ask_at_once(front: Any, competition: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from tiltyard.service.web.boards import BoardCache, Rendered, public_board  # noqa: PLC0415

    assert front
    calls: list[str] = []

    def render(slug: str, form: str, which: str) -> Rendered | None:
        calls.append(slug)
        time.sleep(0.2)
        return public_board(slug, form, which)

    async def ask() -> set[str]:
        with ThreadPoolExecutor(4) as executor:
            cache = BoardCache(executor, render)
            found = await asyncio.gather(*(cache.get(competition.slug, "html") for _ in range(200)))
            return {one.etag for one in found if one is not None}

    assert len(asyncio.run(ask())) == 1
    assert calls == [competition.slug]


def test_the_board_has_a_tag_and_safe_forms(browser: Browser, competition: Any) -> None:
    from tiltyard.service.models import Judging  # noqa: PLC0415

    team = make_team(competition, "=SUM(A1)<script>")
    judging = send(team, ATTACK.format(word="board")).judgings.get()
    Judging.objects.filter(pk=judging.pk).update(
        state="scored", final_score=5.0, finished_at=judging.queued_at
    )
    page = browser.get(f"/c/{competition.slug}")
    assert page.status == 200
    assert "<script>" not in page.text.partition("<main")[2]
    assert "=SUM(A1)&lt;script&gt;" in page.text
    again = browser.get(f"/c/{competition.slug}", if_none_match=page.header("etag"))
    assert (again.status, again.body) == (304, b"")
    table = browser.get(f"/c/{competition.slug}/board.csv").text
    assert table.splitlines()[1].startswith("1,'=SUM(A1)<script>,5.0,")
    rows = browser.get(f"/c/{competition.slug}/board.json").data["rows"]
    assert rows[0]["team"] == "=SUM(A1)<script>"


def test_a_board_that_is_not_public_is_served_to_those_who_may_see_it(
    browser: Browser, competition: Any
) -> None:
    competition.visibility = "organizers"
    competition.save()
    for path in ("", "/board.json", "/board.csv", "/live"):
        assert browser.get(f"/c/{competition.slug}{path}").status in (302, 403)
    assert browser.get(f"/api/v1/competitions/{competition.slug}/board").status == 403
    assert browser.get(f"/events?board={competition.slug}").status == 404
    organizer = sign_in(browser, make_account(f"o{next(_names)}", is_staff=True))
    assert organizer.get(f"/c/{competition.slug}").status == 200
    assert "no-store" in organizer.get(f"/c/{competition.slug}").header("cache-control")


def test_every_answer_has_safe_headers(browser: Browser, competition: Any) -> None:
    for path in ("/", "/healthz", "/login", "/missing", "/static/service.css", "/events"):
        answer = browser.get(path)
        assert "default-src 'none'" in answer.header("content-security-policy"), path
        assert answer.header("x-content-type-options") == "nosniff", path
        assert answer.header("x-frame-options") == "DENY", path
    assert "unsafe" not in browser.get(f"/c/{competition.slug}").header("content-security-policy")


def test_listeners_hear_of_their_submission_and_strangers_do_not(
    front: Any, competition: Any
) -> None:
    team = make_team(competition, "Listeners")
    submission = send(team, ATTACK.format(word=f"listen {next(_names)}"))
    mine = sign_in(Browser(front), team.memberships.get().account)
    stranger = sign_in(Browser(front), make_account(f"s{next(_names)}"))
    address = f"/events?submission={submission.pk}"
    assert stranger.get(address).status == 404
    assert Browser(front).get(address).status == 404
    # The browser of the tests leaves at once, so an accepted stream ends after its first line.
    opened = mine.get(address)
    assert (opened.status, opened.header("content-type")) == (200, "text/event-stream")
    assert opened.body.startswith(b"retry: 2000")


def test_a_thousand_listeners_miss_nothing(front: Any, competition: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from tiltyard.service.actions.records import record  # noqa: PLC0415
    from tiltyard.service.web.boards import BoardCache  # noqa: PLC0415
    from tiltyard.service.web.streams import Broadcaster  # noqa: PLC0415

    assert front
    submission = send(make_team(competition, "Loud"), ATTACK.format(word=f"loud {next(_names)}"))

    async def listen() -> set[tuple[int, ...]]:
        with ThreadPoolExecutor(2) as executor:
            broadcaster = Broadcaster(executor, BoardCache(executor))
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(executor, broadcaster._read)  # From here on.
            topic = f"submission:{submission.pk}"
            queues = [broadcaster.listen(topic) for _ in range(1_000)]
            reading = asyncio.create_task(broadcaster.run())
            for number in range(8):
                await loop.run_in_executor(executor, record, f"test.{number}", submission)
            heard = []
            for queue in queues:
                messages = [await asyncio.wait_for(queue.get(), 30) for _ in range(8)]
                heard.append(tuple(one.number for one in messages if one is not None))
            reading.cancel()
            return {*heard}

    (heard,) = asyncio.run(listen())
    assert len({*heard}) == 8
    assert [*heard] == sorted(heard)


def test_a_deployment_passes_djangos_own_check() -> None:
    import os  # noqa: PLC0415
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    settings = {
        "DJANGO_SETTINGS_MODULE": "tiltyard.service.settings",
        "TILTYARD_ORIGIN": "https://arena.example",
        "TILTYARD_SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "TILTYARD_DATABASE": "sqlite:///:memory:",
    }
    # `prepare` sets a variable for tests beside a browser, which no deployment may have.
    deployed = {key: at for key, at in os.environ.items() if key != "DJANGO_ALLOW_ASYNC_UNSAFE"}
    done = subprocess.run(
        [sys.executable, "-m", "django", "check", "--deploy", "--fail-level", "WARNING"],
        env={**deployed, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout
