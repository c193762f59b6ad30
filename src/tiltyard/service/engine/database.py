"""Use the database from threads that live long, and while it restarts."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
)

P = ParamSpec("P")
R = TypeVar("R")
_PATIENCE_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.5
_AWAY: Final = (OperationalError, InterfaceError, InternalError)
"""The database is down, the connection is gone, or this process was frozen in a transaction."""


def patient(function: Callable[P, R]) -> Callable[P, R]:
    """Call a function again when the database is away, for up to two minutes.

    The function must be one transaction, so that it happens once or not at all.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            close_old_connections()
            try:
                return function(*args, **kwargs)
            except _AWAY:
                connection.close()
                if time.monotonic() >= give_up:
                    raise
                time.sleep(_PAUSE_SECONDS)

    return call
