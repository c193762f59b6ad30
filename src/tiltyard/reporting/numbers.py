"""How numbers and counts are written on pages and in tables."""

from typing import Final

_GROUPED: Final = 10_000


def number(value: float | None) -> str:
    """Write a number with at most two decimals and without trailing zeros."""
    if value is None:
        return "none"
    written = f"{value:.2f}" if abs(value) < _GROUPED else f"{value:,.2f}"
    return written.rstrip("0").rstrip(".")


def figure(value: float | None) -> str:
    """Write a table's figure: whole numbers without decimals, others with two, None as a dash."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def many(count: float, one: str, more: str) -> str:
    """Write a count with its noun in the singular or the plural."""
    return f"{number(count)} {one if count == 1 else more}"


def moment(started: str) -> str:
    """Write when a run started: 2026-01-31T14:05Z becomes "2026-01-31 14:05 UTC"."""
    return started.replace("T", " ").replace("Z", " UTC")


def spoken(predicate: str) -> str:
    """Write a predicate in small letters: EXFILTRATION becomes "exfiltration"."""
    return predicate.lower().replace("_", " ")
