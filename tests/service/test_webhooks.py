"""Webhooks: signed, tried again, and never sent to a machine that is not public."""

import http.server
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from small_servers import ATTACK, make_account, make_competition, make_team, send

pytestmark = pytest.mark.usefixtures("sqlite")
_names: Iterator[int] = iter(range(10_000))


class Receiver:
    """An HTTP server on loopback that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.got.append((self.path, dict(self.headers), body))
                self.send_response(outer.status)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                del args

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def loopback(settings_of_webhooks: Any) -> None:
    settings_of_webhooks.WEBHOOKS_TO_LOOPBACK = True


@pytest.fixture
def settings_of_webhooks(sqlite: str) -> Iterator[Any]:
    assert sqlite
    from django.conf import settings  # noqa: PLC0415

    yield settings
    settings.WEBHOOKS_TO_LOOPBACK = False


@pytest.fixture
def competition() -> Any:
    return make_competition(f"h{next(_names)}", quota=9)


def add(competition: Any, url: str, *kinds: str) -> Any:
    from tiltyard.service.actions.webhooks import add_webhook  # noqa: PLC0415

    return add_webhook(competition, url, [*kinds], make_account(f"o{next(_names)}"))


@pytest.mark.usefixtures("loopback")
def test_a_message_is_signed_and_has_no_figures(receiver: Receiver, competition: Any) -> None:
    from tiltyard.service.engine.messenger import deliver_due  # noqa: PLC0415
    from tiltyard.service.outbound import is_signed  # noqa: PLC0415

    webhook = add(competition, receiver.url, "submission.accepted")
    submission = send(make_team(competition, "A"), ATTACK.format(word="hook"))
    assert deliver_due() == 1
    assert deliver_due() == 0, "each event once"
    ((path, headers, body),) = receiver.got
    assert path == "/hook?x=1"
    header, now = headers["Tiltyard-Signature"], time.time()
    assert is_signed(webhook.secret, header, body, now)
    assert not is_signed("another secret", header, body, now)
    assert not is_signed(webhook.secret, header, body + b" ", now)
    assert not is_signed(webhook.secret, header, body, now + 600), "an old message again"
    data = json.loads(body)
    assert (data["kind"], data["submission"]) == ("submission.accepted", str(submission.pk))
    assert {*data} == {"id", "kind", "at", "competition", "submission", "judging"}


@pytest.mark.usefixtures("loopback")
def test_a_message_is_tried_again_and_given_up_in_the_end(
    receiver: Receiver, competition: Any
) -> None:
    from tiltyard.service.actions.webhooks import MAX_TRIES  # noqa: PLC0415
    from tiltyard.service.engine.messenger import deliver_due  # noqa: PLC0415
    from tiltyard.service.models import Delivery  # noqa: PLC0415

    webhook = add(competition, receiver.url, "team.made")
    receiver.status = 302
    make_team(competition, "A")
    mine = Delivery.objects.filter(webhook=webhook)
    for number in range(MAX_TRIES):
        assert deliver_due() == 1
        one = mine.get()
        assert (one.tries, one.status) == (number + 1, 302), "a redirect is not followed"
        assert deliver_due() == 0, "not at once"
        mine.exclude(next_at=None).update(next_at=one.event.at)
    assert mine.get().next_at is None
    assert {path for path, _, _ in receiver.got} == {"/hook?x=1"}
    receiver.status = 204
    make_team(competition, "B")
    assert deliver_due() == 1
    assert mine.get(status=204).next_at is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/", "begins with https"),
        ("ftp://example.org/", "begins with https"),
        ("https://user:word@example.org/", "neither a user"),
        ("https:///x", "needs a host"),
        ("https://example.org:99999/", "not an address"),
        ("https://example.org/a b", "special characters"),
        ("https://example.org/\r\nX: y", "special characters"),
        ("https://127.0.0.1/", "not a public address"),
        ("https://[::1]/", "not a public address"),
        ("https://10.1.2.3/", "not a public address"),
        ("https://169.254.169.254/latest/meta-data", "not a public address"),
        ("https://[fe80::1]/", "not a public address"),
        ("https://[::ffff:192.168.0.1]/", "not a public address"),
        ("https://0.0.0.0/", "not a public address"),
    ],
)
def test_an_address_that_is_not_public_is_refused_at_once(
    competition: Any, url: str, words: str
) -> None:
    from tiltyard.service.errors import ServiceError  # noqa: PLC0415

    with pytest.raises(ServiceError, match=words):
        add(competition, url, "team.made")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - it must be refused
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fc00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001:0:a00:1::",
    ],
)
def test_a_name_is_refused_that_resolves_to_such_an_address(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    from tiltyard.service import outbound  # noqa: PLC0415

    # One public address beside it does not help.
    found = [(0, 0, 0, "", (one, 443)) for one in ("93.184.216.34", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it connected"))
    with pytest.raises(outbound.AddressError, match="which is not public"):
        outbound.send("https://hook.example/", "s", b"{}", {})


def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tiltyard.service import outbound  # noqa: PLC0415

    asked: list[Any] = []

    def connect(where: Any, *_: Any) -> Any:
        asked.append(where)
        raise OSError("nobody is there")

    answers = iter([[(0, 0, 0, "", ("93.184.216.34", 443))], [(0, 0, 0, "", ("127.0.0.1", 443))]])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: next(answers))
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(OSError, match="nobody is there"):
        outbound.send("https://hook.example/", "s", b"{}", {})
    assert asked == [("93.184.216.34", 443)], "the name is resolved once"
    assert outbound.is_public(ipaddress.ip_address("93.184.216.34"))


def test_a_receiver_that_drips_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiltyard.service import outbound  # noqa: PLC0415

    monkeypatch.setattr(outbound, "_TOTAL_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            client, _ = server.accept()
            with client:
                for _ in range(100):
                    try:
                        client.sendall(b"H")
                    except OSError:
                        return
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        start = time.monotonic()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(OSError, match="not HTTP"):
            outbound.send(url, "s", b"{}", {}, loopback=True)
        assert time.monotonic() - start < 3


def test_the_page_shows_the_secret_once_and_removes_a_webhook(competition: Any) -> None:
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"host": "127.0.0.1"})
    account = make_account(f"o{next(_names)}", is_staff=True)
    client.force_login(account, "django.contrib.auth.backends.ModelBackend")
    page = f"/organize/c/{competition.slug}/webhooks"
    refused = client.post(page, {"url": "https://192.168.0.1/", "kind": ["team.made"]})
    assert refused.status_code == 422
    assert client.post(page, {"url": "https://example.org/", "kind": ["x"]}).status_code == 422
    done = client.post(page, {"url": "https://example.org/", "kind": ["team.made"]})
    webhook = competition.webhooks.get()
    assert webhook.secret in done.content.decode()
    assert webhook.secret not in client.get(page).content.decode()
    make_team(competition, "A")
    assert webhook.deliveries.exclude(next_at=None).count() == 1
    assert client.post(f"/organize/webhooks/{webhook.pk}/remove").status_code == 302
    assert webhook.deliveries.exclude(next_at=None).count() == 0
    make_team(competition, "B")
    assert webhook.deliveries.count() == 1


def test_metrics_are_for_prometheus(competition: Any) -> None:
    from django.test import Client  # noqa: PLC0415

    before = len(competition.submissions.all())
    send(make_team(competition, "A"), ATTACK.format(word="metrics"))
    text = Client(headers={"host": "127.0.0.1"}).get("/metrics").content.decode()
    values = dict(
        line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")
    )
    assert float(values['tiltyard_judgings{state="queued"}']) >= before + 1
    assert float(values["tiltyard_judgings_without_worker"]) >= 1
    assert float(values["tiltyard_queue_oldest_seconds"]) >= 0
    types = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert types == {name.partition("{")[0] for name in values} | {"tiltyard_failures_last_day"}
