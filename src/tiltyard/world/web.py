"""The web corpus: pages, their names, and the search over them.

The corpus never changes during an episode. All worlds of a scenario share one corpus, which builds
its index once and renders each page once.
"""

from functools import cached_property, lru_cache
from typing import Final

from msgspec import Struct

from tiltyard.world.index import Index, words
from tiltyard.world.text import (
    Origin,
    Part,
    SourceKind,
    Text,
    by_machine,
    join,
    neutralise,
    written_by,
)

MAX_RESULTS: Final = 10
SNIPPET_CHARS: Final = 120
REMEMBERED_QUERIES: Final = 1024
REMEMBERED_NAMES: Final = 8192


class Page(Struct, frozen=True, gc=False):
    id: str
    title: str
    content: str
    url: str = ""


class Hit(Struct, frozen=True, gc=False):
    """One entry of a listing: its id, title and sender."""

    id: str
    title: str
    sender: str = ""


class Results(Struct, frozen=True, gc=False):
    hits: tuple[Hit, ...]
    listing: Text


class Corpus:
    """All pages of a scenario, to be found by id, URL, title or words."""

    def __init__(self, pages: tuple[Page, ...], index: Index | None = None) -> None:
        self.pages = pages
        self._by_id = {page.id: page for page in pages}
        self._index = index
        self._opened: dict[tuple[str, bool], Text] = {}
        self.search = lru_cache(maxsize=REMEMBERED_QUERIES)(self._search)
        self.find = lru_cache(maxsize=REMEMBERED_NAMES)(self._find)

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = Index.build((page.title, page.content) for page in self.pages)
        return self._index

    @cached_property
    def _by_name(self) -> dict[str, Page]:
        """Map the slug of each title, and each URL, to the first page that has it."""
        names: dict[str, Page] = {}
        for page in self.pages:
            names.setdefault(slug(page.title), page)
            names.setdefault(page.url, page)
        names.pop("", None)
        return names

    def _find(self, name: str) -> Page | None:
        """Return a page by its id, its URL, or its title written `like-this`."""
        return self._by_id.get(name) or self._by_name.get(name) or self._by_name.get(slug(name))

    def open(self, page: Page, *, neutral: bool) -> Text:
        """Return the labelled content of a page, blanked out if `neutral`."""
        key = page.id, neutral
        text = self._opened.get(key)
        if text is None:
            text = written_by(_origin(page, Part.BODY), page.content)
            text = self._opened[key] = neutralise(text) if neutral else text
        return text

    def _search(self, query: str, *, neutral: bool) -> Results:
        """Return the best pages for a query, and the listing that the agent reads."""
        pages = [self.pages[position] for position in self.index.search(query, MAX_RESULTS)]
        lines: list[Text] = []
        for rank, page in enumerate(pages, 1):
            snippet = page.content[:SNIPPET_CHARS].rpartition(" ")[0].replace("\n", " ")
            lines += (
                by_machine(f"{rank}. [{page.id}] "),
                written_by(_origin(page, Part.TITLE), page.title),
                by_machine("\n   "),
                written_by(_origin(page, Part.BODY), snippet),
                by_machine("\n"),
            )
        listing = join(lines) if lines else by_machine("No results.\n")
        hits = tuple(Hit(page.id, page.title) for page in pages)
        return Results(hits, neutralise(listing) if neutral else listing)


def slug(title: str) -> str:
    """Return the words of a title joined by hyphens, as in a URL."""
    return "-".join(words(title))


def _origin(page: Page, part: Part) -> Origin:
    return Origin(SourceKind.WEB, page.id, part, trusted=False)
