"""Hostile requests: forged forms, archives, names, cookies, headers, and generated calls."""

import io
import stat
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import given, settings

from small_servers import ATTACK, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(10_000))
PASSWORD = "correct horse battery"  # noqa: S105 - an account of a test
FAST_SECONDS = 20.0
"""Far less than a bomb that goes off would take, and enough for a busy machine."""


def browser(account: Any = None, **options: Any) -> Any:
    from django.test import Client  # noqa: PLC0415 - after Django is ready

    client = Client(headers={"host": "127.0.0.1"}, raise_request_exception=False, **options)
    if account is not None:
        client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def competition() -> Any:
    return make_competition(f"x{next(_names)}", quota=9)


def addresses(competition: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and an address of every route that changes something."""
    from tiltyard.service.models import Webhook  # noqa: PLC0415
    from tiltyard.service.web.urls import ROUTES  # noqa: PLC0415

    submission = send(make_team(competition, "Mine"), ATTACK.format(word="forged"))
    webhook = Webhook.objects.create(competition=competition, url="https://example.org")
    values = {
        "<slug:slug>": competition.slug,
        "<uuid:number>": str(submission.pk),
        "<path:rest>": "nothing",
        "<int:webhook>": str(webhook.pk),
        "<int:team>": str(submission.team_id),
        "<int:judging>": str(submission.judgings.get().pk),
    }
    for route in ROUTES:
        if "POST" in route.methods:
            path = route.path
            for pattern, value in values.items():
                path = path.replace(pattern, value)
            while "<" in path:
                path = path[: path.index("<")] + "1" + path[path.index(">") + 1 :]
            yield route.name, f"/{path}"


def test_no_form_is_accepted_without_our_token(competition: Any) -> None:
    from tiltyard.service.models import AuditEntry  # noqa: PLC0415

    listed = list(addresses(competition))
    client = browser(make_account(f"o{next(_names)}", is_staff=True), enforce_csrf_checks=True)
    before = AuditEntry.objects.count()
    evil = {"origin": "https://evil.example", "referer": "https://evil.example/"}
    for name, path in listed:
        assert client.post(path, {"reason": "x"}).status_code == 403, name
        assert client.post(path, {"reason": "x"}, headers=evil).status_code == 403, name
    assert len(listed) > 15
    assert AuditEntry.objects.count() == before, "nothing has changed"


def archive(*entries: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", kind) as made:
        for name, content in entries:
            made.writestr(name, content)
    return written.getvalue()


def bomb() -> bytes:
    return archive(("attack.py", b" " * (300 << 20)))


def many() -> bytes:
    return archive(*((f"file{number}.py", b"") for number in range(10_000)))


def link() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        entry = zipfile.ZipInfo("attack.py")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(entry, "/etc/passwd")
    return written.getvalue()


def overlapping() -> bytes:
    """Return an archive that says that a file is much smaller than it is."""
    content = bytearray(archive(("attack.py", b"x" * (20 << 20))))
    central = content.rindex(b"PK\1\2")
    content[central + 24 : central + 28] = (10).to_bytes(4, "little")
    return bytes(content)


UPLOADS: dict[str, Any] = {
    "a bomb": bomb,
    "10,000 files": many,
    "a link": link,
    "a false size": overlapping,
    "a way out": lambda: archive(("../attack.py", b"x = 1")),
    "a root": lambda: archive(("/etc/attack.py", b"x = 1")),
    "a drive": lambda: archive(("C:\\attack.py", b"x = 1")),
    "a zero": lambda: archive(("attack.py", b"class AttackAlgorithm: pass")).replace(
        b"attack.py", b"at\0ack.py"
    ),
    "half an archive": lambda: archive(("attack.py", ATTACK.encode()))[:-30],
    "an archive in an archive": lambda: archive(("inner.zip", archive(("attack.py", b"x")))),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", UPLOADS)
def test_a_hostile_archive_is_refused_in_words_and_takes_no_quota(
    competition: Any, name: str
) -> None:
    from tiltyard.service.actions.quota import quota_of  # noqa: PLC0415

    team = make_team(competition, "Hostile")
    client = browser(team.memberships.get().account)
    path = f"/api/v1/competitions/{competition.slug}/submit?name=submission.zip"
    start = time.monotonic()
    token = {"authorization": f"Bearer {_token(team)}"}
    answer = client.generic("POST", path, UPLOADS[name](), headers=token)
    assert time.monotonic() - start < FAST_SECONDS
    assert answer.status_code == 422, answer.content
    said = answer.json()["error"]
    assert 5 < len(said) < 500
    assert "/tmp" not in said  # noqa: S108 - no path of ours
    assert quota_of(team).left == competition.quota
    assert not competition.submissions.exists()


def _token(team: Any) -> str:
    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415

    return make_token(team.memberships.get().account, "x").secret


@pytest.mark.parametrize(
    "name",
    ["../../attack.py", "..\\attack.py", "/etc/passwd.py", "a\r\nSet-Cookie: x=1.py", "☠.py"],
)
def test_the_name_of_an_upload_is_only_a_name(competition: Any, name: str) -> None:
    from django.utils.http import urlencode  # noqa: PLC0415

    team = make_team(competition, "Named")
    token = {"authorization": f"Bearer {_token(team)}"}
    query = urlencode({"name": name})
    path = f"/api/v1/competitions/{competition.slug}/submit?{query}"
    source = ATTACK.format(word=f"named {next(_names)}").encode()
    answer = browser().generic("POST", path, source, headers=token)
    assert answer.status_code in (201, 422)
    assert "set-cookie" not in answer
    for submission in competition.submissions.all():
        assert "/" not in submission.name
        assert "\\" not in submission.name
        assert submission.name.isprintable()


def test_ten_thousand_parts_of_a_form_are_not_read(competition: Any) -> None:
    team = make_team(competition, "Parts")
    client = browser(team.memberships.get().account)
    part = b'--x\r\nContent-Disposition: form-data; name="f%d"%s\r\n\r\nv\r\n'
    for extra in (b"", b'; filename="a.py"'):
        body = b"".join(part % (number, extra) for number in range(10_000)) + b"--x--\r\n"
        start = time.monotonic()
        kind = "multipart/form-data; boundary=x"
        answer = client.generic("POST", f"/c/{competition.slug}/submit", body, content_type=kind)
        assert answer.status_code == 400
        assert time.monotonic() - start < FAST_SECONDS
    assert not competition.submissions.exists()


def test_a_session_that_others_chose_is_not_used(competition: Any) -> None:
    from tiltyard.service.models import Account  # noqa: PLC0415

    name = f"fixed{next(_names)}"
    Account.objects.create_user(name, password=PASSWORD)
    # The attacker has a session of the server, and plants its id in the browser of the victim.
    attacker = browser(make_account(f"attacker{next(_names)}"))
    planted = attacker.cookies["sessionid"].value
    victim = browser()
    for cookie in (planted, "a" * 32):
        victim.cookies["sessionid"] = cookie
        done = victim.post("/login", {"username": name, "password": PASSWORD})
        assert done.status_code == 302
        assert victim.cookies["sessionid"].value != cookie
        assert name in victim.get("/me").content.decode()
    assert name not in attacker.get("/me").content.decode()
    kept = victim.cookies["sessionid"].value
    victim.post("/logout")
    again = browser()
    again.cookies["sessionid"] = kept
    assert again.get("/me").status_code == 302, "the session ended with the log-out"
    assert competition.pk


@pytest.mark.parametrize("text", ["/me\r\nSet-Cookie: evil=1", "/me%0d%0aSet-Cookie:%20evil=1"])
def test_no_header_comes_from_a_request(text: str) -> None:
    from tiltyard.service.models import Account  # noqa: PLC0415

    name = f"headers{next(_names)}"
    Account.objects.create_user(name, password=PASSWORD)
    client = browser()
    done = client.post("/login", {"username": name, "password": PASSWORD, "next": text})
    assert "evil" not in client.cookies
    assert "\n" not in done["location"]
    assert done["location"].startswith("/")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "a b", "127.0.0.1@x"])
def test_another_host_is_refused(host: str) -> None:
    answer = browser().get("/login", headers={"host": host})
    assert answer.status_code == 400
    assert b"evil" not in answer.content


def test_the_api_keeps_to_its_description() -> None:
    """Generated calls, good and bad: no error of the server, and answers of the described form."""
    from django.core.wsgi import get_wsgi_application  # noqa: PLC0415

    from tiltyard.service.actions.accounts import make_token  # noqa: PLC0415

    application: Any = get_wsgi_application()
    account = make_account(f"o{next(_names)}", is_staff=True)
    headers = {"Host": "127.0.0.1"}
    token = {**headers, "Authorization": f"Bearer {make_token(account, 'x').secret}"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application, headers=headers)
    called: set[str] = set()
    found: Any
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=8, deadline=None, derandomize=True, database=None)
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            case.call_and_validate(headers=token)
            called.add(f"{case.method} {case.path}")

        call()
    assert len(called) >= 10
