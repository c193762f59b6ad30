"""Who may call a route. Each route names its access, and this module enforces it."""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.http import urlencode
from django.views.decorators.csrf import csrf_exempt
from msgspec import Struct

from tiltyard.service.actions.accounts import find_token
from tiltyard.service.errors import ServiceError
from tiltyard.service.models import Account
from tiltyard.service.wire import Problem
from tiltyard.submissions import SubmissionError

Access = Literal["anyone", "account", "organizer"]
_SAFE: Final = ("GET", "HEAD")


class Route(Struct, frozen=True):
    """An address, its methods, and who may use it."""

    path: str
    view: Callable[..., HttpResponseBase]
    name: str
    methods: tuple[str, ...] = ("GET",)
    access: Access = "anyone"
    scope: str = "read"
    """What a token needs to call it."""
    returns: Any = None
    """The type of the answer. Only routes of the API have one."""

    @property
    def is_api(self) -> bool:
        return self.returns is not None

    def url(self) -> URLPattern:
        guarded = _guard_api(self) if self.is_api else _guard_page(self)
        return path(self.path, guarded, name=self.name)


def account_of(request: HttpRequest) -> Account | None:
    """Return the account that makes a request."""
    user: Any = request.user
    return user if user.is_authenticated else None


def signed_in(request: HttpRequest) -> Account:
    """Return the account of a request to a route that needs one."""
    account = account_of(request)
    assert account is not None, "the route needs an account"
    return account


def answer(found: Any, status: int = 200) -> HttpResponse:
    response = HttpResponse(msgspec.json.encode(found), "application/json", status)
    response["Cache-Control"] = "no-store"
    return response


def _guard_api(route: Route) -> Callable[..., HttpResponseBase]:
    @csrf_exempt  # `_sign_in` checks what needs it.
    def call(request: HttpRequest, **values: Any) -> HttpResponseBase:
        try:
            _check_method(route, request)
            _sign_in(route, request)
            _check_access(route, account_of(request))
            return route.view(request, **values)
        except ServiceError as error:
            return answer(Problem(str(error)), error.status)
        except SubmissionError as error:
            return answer(Problem(str(error)), 422)

    return call


def _guard_page(route: Route) -> Callable[..., HttpResponseBase]:
    def call(request: HttpRequest, **values: Any) -> HttpResponseBase:
        account = account_of(request)
        if route.access != "anyone" and account is None:
            return redirect(f"/login?{urlencode({'next': request.path})}")
        try:
            _check_method(route, request)
            _check_access(route, account)
            response = route.view(request, **values)
        except ServiceError as error:
            response = render(request, "problem.html", {"text": str(error)}, status=error.status)
        response.setdefault("Cache-Control", "no-store")
        return response

    return call


def _check_method(route: Route, request: HttpRequest) -> None:
    allowed = {*route.methods, *(("HEAD",) if "GET" in route.methods else ())}
    if request.method not in allowed:
        raise ServiceError(f"Use {' or '.join(route.methods)} here.", 405)


def _sign_in(route: Route, request: HttpRequest) -> None:
    """Sign in by token, or by the session of a browser, which must prove that it is our page."""
    header = request.headers.get("Authorization", "")
    if header:
        kind, _, secret = header.partition(" ")
        token = find_token(secret.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise ServiceError("This token is not valid. Make a new one on your page.", 401)
        if route.scope not in token.scopes:
            raise ServiceError(f"This token lacks the scope {route.scope!r}.", 403)
        request.user = token.account
    elif request.method not in _SAFE:
        refused = CsrfViewMiddleware(lambda _: HttpResponse()).process_view(
            request, route.view, (), {}
        )
        if refused is not None:
            raise ServiceError("Send a token, or the CSRF token of your page.", 403)


def _check_access(route: Route, account: Account | None) -> None:
    if route.access != "anyone" and account is None:
        raise ServiceError("Sign in, or send a token: `Authorization: Bearer TOKEN`.", 401)
    if route.access == "organizer" and not (account is not None and account.organizes):
        raise ServiceError("Only organizers can do this.", 403)
