"""The endpoint over real HTTP: every reply gives an answer, or an error in one sentence."""

import gzip
import socket
import ssl
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import trustme

from agents.scripted import (
    Reply,
    ScriptedServer,
    answer,
    completion,
    cut_chunks,
    cut_short,
    endless,
    failure,
    hang,
    says,
    trickle,
    trickle_chunk,
    trickle_headers,
    trickle_unmeasured,
)
from tiltyard.agents.model.endpoint import MAX_REPLY_BYTES, Endpoint, check_address
from tiltyard.agents.model.record import Answered
from tiltyard.contracts.agent import AgentGoneError

KEY: Final = "sk-Test/0123456789abcdef"
BODY: Final = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
GOOD: Final = completion("good")

Ask = Callable[..., Answered]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(url: str, *, seconds: float = 5.0, retries: int = 1, body: Any = BODY) -> Answered:
    endpoint = Endpoint("m", base_url=url, seconds=seconds, retries=retries)
    try:
        return endpoint.ask(body)
    finally:
        endpoint.close()


def gone(url: str, **how: Any) -> str:
    """Return the error with which a request fails."""
    with pytest.raises(AgentGoneError) as found:
        ask(url, **how)
    told = str(found.value)
    assert "\n" not in told
    assert len(told) < 500
    assert KEY not in told
    return told


def test_a_reply_is_returned_unchanged() -> None:
    with ScriptedServer([says("good")]) as server:
        assert ask(server.url) == Answered(200, GOOD)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == BODY


def test_parameters_unknown_to_the_client_are_sent_too() -> None:
    with ScriptedServer([says("good")]) as server:
        ask(server.url, body=BODY | {"cache_prompt": False})
    assert server.requests[0].body["cache_prompt"] is False


def test_the_address_of_the_environment_is_used_and_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer([says("good")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert ask("").status == 200
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@127.0.0.1/v1")
    assert "must not contain a user" in gone("")


def test_an_endpoint_without_a_key_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer([says("good")]) as server:
        endpoint = Endpoint("m", base_url=server.url, with_key=False)
        endpoint.ask(BODY)
        endpoint.close()
        monkeypatch.delenv("OPENAI_API_KEY")
        ask(server.url)
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer none"] * 2


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert "there is no key for OpenAI" in gone("")


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_no_proxy_is_used_for_this_machine(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    with ScriptedServer([failure(500)]) as other, ScriptedServer([says("good")]) as server:
        monkeypatch.setenv(proxy, other.url)
        assert ask(server.url).status == 200
    assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:80",
        "ftp://h/v1",
        "http://",
        "file:///etc",
        "http://[::1",
        "http://u:p@h/v1",
        "http://h/v1?key=1",
    ],
)
def test_an_address_has_no_password_and_no_query(url: str) -> None:
    with pytest.raises(AgentGoneError):
        check_address(url)


def test_the_client_obeys_retry_after() -> None:
    wait = answer(429, "{}", {"Retry-After": "1"})
    with ScriptedServer([wait, says("good")]) as server:
        began = time.monotonic()
        assert ask(server.url).body == GOOD
        assert time.monotonic() - began >= 1.0
    assert len(server.requests) == 2


def test_a_wait_is_not_taken_from_the_time_of_the_reply() -> None:
    wait = answer(429, "{}", {"Retry-After": "2"})
    with ScriptedServer([wait, says("good")]) as server:
        assert ask(server.url, seconds=1.5).body == GOOD


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_temporary_failures_are_retried(status: int) -> None:
    with ScriptedServer([failure(status), failure(status), says("good")]) as server:
        assert ask(server.url, retries=2).body == GOOD
    assert len(server.requests) == 3


@pytest.mark.parametrize("broken", [cut_short(GOOD), cut_chunks(GOOD), cut_short("")])
def test_an_incomplete_reply_is_retried(broken: Reply) -> None:
    with ScriptedServer([broken, says("good")]) as server:
        assert ask(server.url).body == GOOD
    assert len(server.requests) == 2


def test_a_hang_is_retried() -> None:
    with ScriptedServer([hang, says("good")]) as server:
        assert ask(server.url, seconds=1.0).body == GOOD
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_ends_after_the_retries(status: int) -> None:
    with ScriptedServer([failure(status, "the GPU is on fire")]) as server:
        told = gone(server.url, retries=2)
    assert f"answered {status}" in told
    assert "the GPU is on fire" in told
    assert len(server.requests) == 3


@pytest.mark.parametrize("broken", [cut_short(GOOD), cut_chunks(GOOD)])
def test_replies_that_are_always_incomplete(broken: Reply) -> None:
    with ScriptedServer([broken]) as server:
        assert "cannot be reached" in gone(server.url)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "slow",
    [
        hang,
        trickle(),
        trickle(500),
        trickle(400),
        trickle_headers,
        trickle_chunk,
        trickle_unmeasured,
    ],
)
def test_an_endless_reply_is_stopped(slow: Reply) -> None:
    with ScriptedServer([slow]) as server:
        began = time.monotonic()
        told = gone(server.url, seconds=0.6, retries=0)
        assert time.monotonic() - began < 10
    assert "did not answer within 0.6 s" in told


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted(status: int) -> None:
    with ScriptedServer([failure(status, f"wrong key {KEY}")]) as server:
        told = gone(server.url)
    assert f"does not accept the key ({status})" in told
    assert "OPENAI_API_KEY" in told
    assert len(server.requests) == 1


def test_an_unknown_model() -> None:
    with ScriptedServer([failure(404)]) as server:
        assert "no model 'm'" in gone(server.url)


def test_a_port_without_a_server() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert "cannot be reached" in gone(f"http://127.0.0.1:{port}/v1")


def test_a_server_without_http() -> None:
    def gibberish(wire: Any) -> None:
        wire.send(b"SSH-2.0-OpenSSH_9.9\r\n")

    with ScriptedServer([gibberish]) as server:
        assert "cannot be reached" in gone(server.url)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_conversation_is_an_answer(status: int) -> None:
    with ScriptedServer([failure(status, "maximum context length is 8192")]) as server:
        answered = ask(server.url)
    assert answered.status == status
    assert "maximum context length" in answered.body
    assert len(server.requests) == 1


def measured(url: str) -> tuple[Answered, int]:
    """Return the second answer, and the peak memory of that request in bytes."""
    ask(url)  # So that imports are not measured.
    tracemalloc.start()
    try:
        return ask(url), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("status", [200, 400])
def test_a_huge_reply_is_not_read_to_its_end(status: int) -> None:
    sent = [0]
    with ScriptedServer([says("good"), endless(status, sent)]) as server:
        answered, most = measured(server.url)
    assert answered.status == status
    assert answered.body.strip() == ""
    # Of 100 MB. The buffers of two sockets may have taken more than the client read.
    assert sent[0] < 30 << 20
    assert most < 10 * MAX_REPLY_BYTES


def test_the_largest_reply_that_is_read() -> None:
    at_most = "x" * MAX_REPLY_BYTES
    with ScriptedServer([answer(200, at_most), answer(200, at_most + "x")]) as server:
        assert ask(server.url).body == at_most
        assert ask(server.url).body == ""


def test_a_compressed_reply_is_not_decompressed() -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    packed = answer(200, bomb, {"Content-Encoding": "gzip"})
    with ScriptedServer([says("good"), packed]) as server:
        _, most = measured(server.url)
    assert most < 10 * MAX_REPLY_BYTES
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with ScriptedServer([says("elsewhere")]) as elsewhere:
        away = answer(status, "{}", {"Location": f"{elsewhere.url}/chat/completions"})
        with ScriptedServer([away]) as server:
            assert f"redirects elsewhere ({status})" in gone(server.url)
    assert elsewhere.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 418, 422, 429, 500])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda key: key.replace("/", r"\/"),
        lambda key: "".join(f"\\\\u{ord(char):04x}" for char in key),  # JSON within JSON
        lambda key: key.upper(),
        lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    ],
)
def test_an_endpoint_that_repeats_the_key(status: int, spell: Callable[[str], str]) -> None:
    body = f'{{"error": {{"message": "your key {spell(KEY)} is odd"}}}}'
    with ScriptedServer([answer(status, body, {"retry-after-ms": "1"})]) as server:
        if status in (200, 400, 422):
            told = ask(server.url).body
            assert "(the key)" in told
        else:
            told = gone(server.url)
    assert KEY.casefold() not in told.casefold()
    assert spell(KEY) not in told


def test_a_placeholder_key_is_not_removed_from_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    said = completion("I am ollama")
    with ScriptedServer([answer(200, said)]) as server:
        assert ask(server.url).body == said


def test_a_line_end_after_the_key_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    with ScriptedServer([says("good")]) as server:
        ask(server.url)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["sk-secret\nX-Evil: 1", "sk-secret\x07", "sk-secrét", "sk secret"])
def test_an_invalid_key_is_not_quoted(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with ScriptedServer([says("good")]) as server:
        told = gone(server.url)
    assert "secr" not in told
    assert "OPENAI_API_KEY" in told
    assert server.requests == []


HOST: Final = "127.0.0.2"
"""This machine too, but under a name for which the client uses the environment's settings."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("NO_PROXY", "*")


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.mark.usefixtures("trusted")
def test_a_good_certificate(authority: trustme.CA) -> None:
    tls = serving(authority.issue_cert(HOST))
    with ScriptedServer([says("good")], host=HOST, tls=tls) as server:
        assert ask(server.url).body == GOOD


@pytest.mark.usefixtures("trusted")
def test_an_expired_certificate(authority: trustme.CA) -> None:
    late = datetime.now(UTC) - timedelta(days=1)
    tls = serving(authority.issue_cert(HOST, not_after=late))
    with ScriptedServer([says("good")], host=HOST, tls=tls) as server:
        assert "certificate has expired" in gone(server.url)
    assert server.requests == []


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("whose", ["another's", "another name's"])
def test_a_certificate_that_is_not_trusted(authority: trustme.CA, whose: str) -> None:
    certificate = (
        trustme.CA().issue_cert(HOST)
        if whose == "another's"
        else authority.issue_cert("other.example")
    )
    with ScriptedServer([says("good")], host=HOST, tls=serving(certificate)) as server:
        assert "certificate verify failed" in gone(server.url)
    assert server.requests == []


@pytest.mark.parametrize("charset", ["hex", "zlib", "rot13", "idna", "undefined", "utf-8"])
@pytest.mark.parametrize("status", [200, 302, 400, 418])
def test_a_server_cannot_choose_the_codec(status: int, charset: str) -> None:
    reply = answer(status, "words", {"Content-Type": f"text/plain; charset={charset}"})
    with ScriptedServer([reply]) as server:
        if status in (200, 400):
            assert ask(server.url, retries=0).body == "words"
        else:
            assert str(status) in gone(server.url, retries=0)
