"""The templates: Jinja2, which escapes everything that it prints."""

import re
from datetime import datetime
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from tiltyard import __version__
from tiltyard.reporting.numbers import figure
from tiltyard.reporting.page import PLOTTERS
from tiltyard.service.web.markdown import render_markdown
from tiltyard.service.web.plots import plot_data

_MINUTE: Final = 60


def environment(**options: Any) -> Environment:
    made = Environment(**{**options, "autoescape": True, "undefined": StrictUndefined})  # noqa: S701
    made.filters |= {
        "figure": figure,
        "when": when,
        "ago": ago,
        "span": span,
        "ticked": ticked,
        "markdown": render_markdown,
        "plot_data": plot_data,
        "block_kind": lambda block: block.__struct_config__.tag,
    }
    made.globals |= {"version": __version__}
    return made


def when(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def ticked(text: str) -> Markup:
    """Return a text of ours with `code` between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def span(seconds: float | None) -> str:
    """Return a duration in the largest unit that says something."""
    if seconds is None:
        return "-"
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def palette() -> str:
    """Return the colours of the reports, which the pages share."""
    return (files("tiltyard.reporting") / "assets" / "palette.css").read_text(encoding="utf-8")


def ago(seconds: float | None) -> str:
    """Write how long ago something was, as coarsely as it matters."""
    if seconds is None:
        return "never"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s ago"
    return f"{seconds / _MINUTE:.0f} min ago"


def shared_assets() -> dict[str, bytes]:
    """Return the style sheets and scripts of the reports, which the pages share."""
    assets = files("tiltyard.reporting") / "assets"
    names = ("palette.css", "page.css", "text.js", "blocks.js", "plots.js", *PLOTTERS)
    return {name.rpartition("/")[2]: (assets / name).read_bytes() for name in names}
