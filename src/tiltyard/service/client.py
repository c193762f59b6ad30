"""The commands `submit` and `status` speak to a server with this. It needs no extra."""

import json
from typing import Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from tiltyard.foundation.printable import printable
from tiltyard.service.wire import (
    PREFIX,
    Accepted,
    BoardView,
    CompetitionView,
    Me,
    SubmissionView,
)

T = TypeVar("T")
_SECONDS: Final = 60.0
_MAX_ANSWER: Final = 50_000_000


class ServerError(Exception):
    """The server refused, or cannot be reached; the message says why."""


class _NoRedirect(HTTPRedirectHandler):
    """Refuses to follow: the token is for one server only."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """A server's API, for one account."""

    def __init__(self, server: str, token: str = "") -> None:
        found = urlsplit(server)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ServerError(f"{server!r} is not the address of a server: http://HOST:PORT")
        self._server = f"{found.scheme}://{found.netloc}"
        self._token = token

    def me(self) -> Me:
        return self._get("/me", Me)

    def competitions(self) -> list[CompetitionView]:
        return self._get("/competitions", list[CompetitionView])

    def board(self, competition: str) -> BoardView:
        return self._get(f"/competitions/{quote(competition)}/board", BoardView)

    def submit(self, competition: str, name: str, content: bytes) -> Accepted:
        """Send a .zip file. The same bytes are the same submission, so it is safe to repeat."""
        query = urlencode({"name": name})
        return self._call(f"/competitions/{quote(competition)}/submit?{query}", Accepted, content)

    def submissions(self, competition: str) -> list[SubmissionView]:
        return self._get(f"/competitions/{quote(competition)}/submissions", list[SubmissionView])

    def submission(self, number: str) -> SubmissionView:
        return self._get(f"/submissions/{quote(number)}", SubmissionView)

    def cancel(self, number: str) -> SubmissionView:
        return self._call(f"/submissions/{quote(number)}/cancel", SubmissionView, b"")

    def _get(self, path: str, kind: type[T]) -> T:
        return self._call(path, kind, None)

    def _call(self, path: str, kind: type[T], body: bytes | None) -> T:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/octet-stream"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(f"{self._server}{PREFIX}{path}", body, headers)  # noqa: S310 - checked
        try:
            with build_opener(_NoRedirect).open(request, timeout=_SECONDS) as answer:
                return msgspec.json.decode(answer.read(_MAX_ANSWER), type=kind)
        except HTTPError as error:
            raise ServerError(_reason(error)) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"{self._server} cannot be reached: {reason}") from None
        except msgspec.MsgspecError as error:
            raise ServerError(f"{self._server} gave an answer that is not ours: {error}") from None


def _reason(error: HTTPError) -> str:
    """Return the server's own words, made printable."""
    try:
        said = json.loads(error.read(100_000))["error"]
    except (ValueError, KeyError, TypeError, OSError):
        return f"the server answered {error.code}"
    return printable(said, limit=1_000)
