"""The status of a search, for progress bars. The search itself never looks at it."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class SearchStatus(Struct, frozen=True, gc=False):
    """How far a search has come."""

    epoch: int
    steps: int
    budget: int
    interactions: int
    cells: int
    claims: int


OnStatus = Callable[[SearchStatus], Any]


def ignore_status(status: SearchStatus) -> None:
    """Do nothing: the default callback."""
    del status
