"""Markdown of organizers as HTML. Raw HTML stays text, and no image or script is loaded."""

from typing import Final

from markdown_it import MarkdownIt
from markupsafe import Markup

_WRITER: Final = (
    MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
)
"""It escapes raw HTML, and refuses links with the schemes javascript, vbscript, file and data."""


_LOWEST: Final = 6


def render_markdown(text: str) -> Markup:
    """Return the text as HTML. Its headings begin below that of the page."""
    tokens = _WRITER.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_LOWEST, int(token.tag[1:]) + 1)}"
    return Markup(_WRITER.renderer.render(tokens, _WRITER.options, {}))  # noqa: S704 - as above
