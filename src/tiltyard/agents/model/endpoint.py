"""An OpenAI-compatible endpoint, through the official client.

The client retries after temporary errors (429, 5xx, lost connections, incomplete or late replies)
and obeys `Retry-After`. Every other failure becomes one sentence without the API key. Replies have
a bound and a deadline. The client follows no redirects, because the API key would go along.
"""

import os
import re
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from tiltyard.agents.model.record import Answered
from tiltyard.contracts.agent import AgentGoneError
from tiltyard.foundation.printable import printable

KEY_VARIABLE: Final = "OPENAI_API_KEY"
ADDRESS_VARIABLE: Final = "OPENAI_BASE_URL"
OPENAI_ADDRESS: Final = "https://api.openai.com/v1"
MAX_REPLY_BYTES: Final = 1 << 20
TOO_LARGE: Final = Answered(200, "")
"""The answer that replaces a reply over the size limit: it is empty."""
_ABOUT_THE_REQUEST: Final = (400, 413, 422)
"""Status codes for a conversation that the endpoint refuses, such as one that is too long."""
_TRIED_AGAIN: Final = (408, 409, 429)
_MAX_WORDS: Final = 300
_SECRET_CHARS: Final = 8
"""A shorter key is a placeholder for an endpoint without keys, and not secret."""


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
        base_url = address_of(base_url)
        check_address(base_url)
        if with_key:
            check_key(base_url)
        openai, make_client = _client_packages()
        self._errors = openai
        self.model = model
        key = _key() if with_key else ""
        self._secret = _spellings(key)
        self._is_secret = len(key) >= _SECRET_CHARS
        self._address = base_url or OPENAI_ADDRESS
        self._seconds = seconds
        self._tries = retries + 1
        self._client = openai.OpenAI(
            api_key=key or "none",
            base_url=self._address,
            max_retries=retries,
            # Use no proxy for a server on this machine.
            http_client=make_client(
                seconds, MAX_REPLY_BYTES + 1, proxies=not _is_loopback(base_url)
            ),
        )

    def ask(self, body: dict[str, Any]) -> Answered:
        """Send one request, and return the reply."""
        errors = self._errors
        create = self._client.chat.completions.with_raw_response.create
        known = {name: value for name, value in body.items() if name not in _NOT_OPENAI}
        extra = {name: value for name, value in body.items() if name in _NOT_OPENAI}
        try:
            reply = create(**known, extra_body=extra or None)
        except errors.APIStatusError as error:
            if error.status_code in _ABOUT_THE_REQUEST:
                return Answered(error.status_code, self._quotable(error.response.text))
            raise self._gone(error) from None
        except errors.APITimeoutError:
            again = f", {self._tries} times in a row" if self._tries > 1 else ""
            raise AgentGoneError(
                f"the model did not answer within {self._seconds:g} s{again}"
            ) from None
        except errors.APIConnectionError as error:
            cause = error.__cause__ or error
            said = self._quotable(str(cause) or type(cause).__name__)
            raise AgentGoneError(
                f"the endpoint {self._address} cannot be reached: {said}"
            ) from None
        except Exception as error:  # noqa: BLE001
            # The client may raise other errors for unexpected replies.
            said = f"{type(error).__name__}: {self._quotable(str(error))}"
            raise AgentGoneError(f"the model failed: {said}") from None
        if len(reply.content) > MAX_REPLY_BYTES:
            return TOO_LARGE
        text = reply.content.decode("utf-8", "replace")
        return Answered(reply.status_code, self._without_key(text) if self._is_secret else text)

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
        again = status in _TRIED_AGAIN or status >= 500
        tries = f", and was tried up to {self._tries} times" if again else ""
        return AgentGoneError(
            f"the endpoint answered {status}{tries}: {self._quotable(str(error))}"
        )

    def _quotable(self, text: str) -> str:
        """Return the endpoint's words as a part of a sentence."""
        return printable(self._without_key(text)[:_MAX_WORDS], replacement=" ")

    def _without_key(self, text: str) -> str:
        """Remove the API key, which some endpoints repeat."""
        return text if self._secret is None else self._secret.sub("(the key)", text)

    def close(self) -> None:
        self._client.close()


_NOT_OPENAI: Final = ("cache_prompt",)
"""Parameters of the local server that the client does not know."""


def _key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not re.fullmatch("[!-~]*", key):
        # The client would quote the key in its error.
        raise AgentGoneError(
            f"{KEY_VARIABLE} is not a valid key: it contains characters that no key contains"
        )
    return key


def _spellings(key: str) -> re.Pattern[str] | None:
    """Return a pattern for the key, also inside of JSON."""
    # Any number of backslashes, for JSON within JSON.
    one = (rf"\\*(?:{re.escape(c)}|\\u{ord(c):04x})" for c in key)
    return re.compile("".join(one), re.IGNORECASE) if key else None


def address_of(base_url: str) -> str:
    """Return the user's address, or that of the environment; empty means OpenAI."""
    return base_url or os.environ.get(ADDRESS_VARIABLE, "")


def check_address(base_url: str) -> None:
    """Refuse an invalid address, or one with a password: reports contain the address."""
    if not base_url:
        return
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None or bool(parts.query)
    except ValueError:
        good, secret = False, False
    if not good:
        raise AgentGoneError("--base-url must be an address such as http://127.0.0.1:8000/v1")
    if secret:
        raise AgentGoneError(
            "--base-url must not contain a user, a password or a query; a key belongs in "
            f"{KEY_VARIABLE}"
        )


def check_key(base_url: str) -> None:
    """Refuse an invalid key, and OpenAI itself without a key."""
    if not (_key() or address_of(base_url)):
        raise AgentGoneError(
            f"there is no key for OpenAI: set {KEY_VARIABLE}, or name another endpoint "
            "with --base-url"
        )


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _client_packages() -> tuple[Any, Any]:
    """Import the client only when it is needed: it is an optional package, and slow to import."""
    try:
        import openai  # noqa: PLC0415

        from tiltyard.agents.model.bounds import BoundedClient  # noqa: PLC0415
    except ImportError:
        raise AgentGoneError(
            "language models need the openai package: pip install 'tiltyard[openai]'"
        ) from None
    return openai, BoundedClient
