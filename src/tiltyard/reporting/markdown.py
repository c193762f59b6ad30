"""Markdown: the templates in `templates/`, and the tables and lists that fill them."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Final

from tiltyard.foundation.printable import printable

_WIDTH: Final = 100
_SPECIAL: Final = frozenset("\\`*_{}[]<>#|~&$")


def fill(template: str, **parts: str) -> str:
    """Fill a template; a part that is empty leaves no gap."""
    path = files("tiltyard.reporting") / "templates" / template
    text = Template(path.read_text(encoding="utf-8")).substitute(parts)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join((lines[0], "|" + "---|" * len(head), *lines[1:]))


def bullets(items: Iterable[str]) -> str:
    """Return a list, wrapped as the documents are."""
    return "\n".join(
        textwrap.fill(
            f"- {item}",
            _WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


def escape(text: str) -> str:
    """Return hostile text so that Markdown shows it literally."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in printable(text))
