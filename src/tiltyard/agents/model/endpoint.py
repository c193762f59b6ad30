"""An OpenAI-compatible endpoint, asked through the official client.

The client retries what is worth it (429, 5xx, lost connections) and heeds `Retry-After`. What is
left of a failure is told in a sentence, from which the key is taken out. A reply is read up to a
bound and a deadline, whatever the server does. Redirects are not followed: the key would go along.
"""

import os
import time
from typing import Any, Final
from urllib.parse import urlsplit

from tiltyard.agent import AgentGoneError
from tiltyard.agents.model.record import Answered

KEY_VARIABLE: Final = "OPENAI_API_KEY"
MAX_REPLY_BYTES: Final = 1 << 20
TOO_LARGE: Final = Answered(200, "")
"""A reply that nobody reads to its end is an empty one."""
_ABOUT_THE_REQUEST: Final = (400, 413, 422)
"""What an endpoint says of a conversation that it cannot take, such as one that is too long."""
_MAX_WORDS: Final = 300


class Endpoint:
    """A model at an address."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        with_key: bool = True,
        seconds: float = 60.0,
        retries: int = 4,
    ) -> None:
        check_address(base_url)
        if with_key:
            check_key(base_url)
        openai, httpx = _client_packages()
        self._errors = openai
        self._broken = httpx.HTTPError
        self.model = model
        key = os.environ.get(KEY_VARIABLE, "") if with_key else ""
        self._key = key
        self._seconds = seconds
        self._retries = retries
        self._http = httpx.Client(
            follow_redirects=False,
            timeout=httpx.Timeout(seconds, connect=min(10.0, seconds)),
            # A proxy has no business between us and this machine.
            trust_env=not _is_loopback(base_url),
        )
        self._client = openai.OpenAI(
            api_key=key or "none",
            base_url=base_url or None,
            max_retries=retries,
            http_client=self._http,
        )

    def ask(self, body: dict[str, Any]) -> Answered:
        """Send one request, and return what came back, as it came."""
        errors = self._errors
        for attempt in range(self._retries + 1):
            try:
                return self._ask_once(body)
            except errors.APIStatusError as error:
                if error.status_code in _ABOUT_THE_REQUEST:
                    return Answered(error.status_code, self._scrubbed(error.response.text))
                raise self._gone(error) from None
            except errors.APITimeoutError:
                raise AgentGoneError(
                    f"the model did not answer within {self._seconds:g} s, "
                    f"{self._retries + 1} times in a row"
                ) from None
            except errors.APIConnectionError as error:
                cause = self._scrubbed(str(error.__cause__ or error))
                raise AgentGoneError(f"the endpoint cannot be reached: {cause}") from None
            except self._broken as error:
                # The connection broke in the middle of a reply: the client has left by then.
                if attempt == self._retries:
                    said = self._scrubbed(str(error) or type(error).__name__)
                    raise AgentGoneError(f"the endpoint broke off its reply: {said}") from None
            except errors.OpenAIError as error:
                raise AgentGoneError(f"the model failed: {self._scrubbed(str(error))}") from None
        raise AssertionError("unreachable")

    def _ask_once(self, body: dict[str, Any]) -> Answered:
        create = self._client.chat.completions.with_streaming_response.create
        known = {name: value for name, value in body.items() if name not in _NOT_OPENAI}
        extra = {name: value for name, value in body.items() if name in _NOT_OPENAI}
        end = time.monotonic() + self._seconds
        with create(**known, extra_body=extra or None) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MAX_REPLY_BYTES:
                    return TOO_LARGE
                if time.monotonic() > end:
                    raise AgentGoneError(
                        f"the endpoint did not end its reply within {self._seconds:g} s"
                    )
            return Answered(response.status_code, b"".join(parts).decode("utf-8", "replace"))

    def _gone(self, error: Any) -> AgentGoneError:
        status = error.status_code
        if status in (401, 403):
            return AgentGoneError(
                f"the endpoint does not accept the key ({status}); it is read from {KEY_VARIABLE}"
            )
        if status == 404:
            return AgentGoneError(
                f"the endpoint has no model {self.model!r}, or the address is not its "
                "OpenAI-compatible one, which usually ends in /v1 (404)"
            )
        if 300 <= status < 400:
            return AgentGoneError(
                f"the endpoint redirects elsewhere ({status}), and the key is not sent there; "
                "name the right address with --base-url"
            )
        tries = f"{self._retries + 1} times in a row" if status == 429 or status >= 500 else "once"
        said = self._scrubbed(str(error))
        return AgentGoneError(f"the endpoint answered {status}, {tries}: {said}")

    def _scrubbed(self, text: str) -> str:
        """Return a stranger's words without the key, which some endpoints repeat."""
        told = text.replace(self._key, "(the key)") if self._key else text
        return "".join(c if c.isprintable() else " " for c in told)[:_MAX_WORDS]

    def close(self) -> None:
        self._client.close()


_NOT_OPENAI: Final = ("cache_prompt",)
"""What a server of our own understands, and the client has no parameter for."""


def check_address(base_url: str) -> None:
    """Refuse an address that cannot be one, or has a password in it: addresses are written down."""
    if not base_url:
        return
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None or bool(parts.query)
    except ValueError:
        good, secret = False, False
    if not good:
        raise AgentGoneError("--base-url is no address such as http://127.0.0.1:8000/v1")
    if secret:
        raise AgentGoneError(
            f"--base-url has more than an address in it; a key belongs into {KEY_VARIABLE}"
        )


def check_key(base_url: str) -> None:
    """Refuse to ask OpenAI itself without a key."""
    if not (base_url or os.environ.get(KEY_VARIABLE) or os.environ.get("OPENAI_BASE_URL")):
        raise AgentGoneError(
            f"there is no key for OpenAI: put it into {KEY_VARIABLE}, or name another endpoint "
            "with --base-url"
        )


def _is_loopback(base_url: str) -> bool:
    return (urlsplit(base_url).hostname or "") in ("127.0.0.1", "::1", "localhost")


def _client_packages() -> tuple[Any, Any]:
    """Import the client when a model is really asked: it takes a while, and is an extra."""
    try:
        import httpx2  # noqa: PLC0415
        import openai  # noqa: PLC0415
    except ImportError:
        raise AgentGoneError(
            "a model is asked through the openai package: pip install 'tiltyard[openai]'"
        ) from None
    return openai, httpx2
