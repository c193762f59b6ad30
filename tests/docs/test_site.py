"""Build the site as readers get it: no warning, no dead link, nothing loaded from other hosts."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

import pytest

import tiltyard
from tiltyard import attacks, benign, guardrails, inference, judge, search
from tiltyard.reporting.schema import json_schema

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    path.relative_to(ROOT / "docs")
    for path in sorted(ROOT.glob("docs/**/*.md"))
    if "season" not in path.parts
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return into


class Page(HTMLParser):
    """The links, anchors and fetched files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if tag == "a" and name == "href" and value:
                self.links.append(value)
            elif value and (name == "src" or (tag == "link" and name == "href")):
                self.fetched.append(value)


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> Iterator[Path]:
    return (path for path in site.rglob("*.html") if path.name != "404.html")


def test_every_page_is_there_and_can_be_found(site: Path) -> None:
    start = read(site / "index.html")
    listed = {(site / urldefrag(link).url).resolve() for link in start.links if "://" not in link}
    for page in PAGES:
        assert (site / page.with_suffix(".html")).resolve() in listed | {site / "index.html"}, page


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    for path in pages(site):
        for link in read(path).links:
            if "://" in link:
                continue
            target, anchor = urldefrag(unquote(link))
            there = (path.parent / target).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), f"{path.name}: {link}"
            if anchor and there.suffix == ".html":
                assert anchor in read(there).anchors, f"{path.name}: {link}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in pages(site):
        for fetched in read(path).fetched:
            assert "//" not in fetched, f"{path.name}: {fetched}"
            assert (path.parent / urldefrag(fetched).url.partition("?")[0]).is_file(), fetched
    for style in site.rglob("*.css"):
        found = re.findall(r"url\(['\"]?(?:https?:)?//|@import", style.read_text(encoding="utf-8"))
        assert not found, style


def test_the_search_knows_the_pages(site: Path) -> None:
    index = (site / "search/search_index.json").read_text(encoding="utf-8")
    assert all(f'"{page.with_suffix(".html").as_posix()}' in index for page in PAGES)


def test_every_command_has_a_section(site: Path) -> None:
    text = (site / "command-line.html").read_text(encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-m", "tiltyard", "--help"],
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = re.findall(r"^│ ([a-z][a-z-]*) ", shown, re.MULTILINE)
    assert {"evaluate", "scenario", "doctor"} <= {*names}
    table = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    for name in names:
        assert re.search(rf'id="tiltyard-{name}[-"]', text), f"no section about {name}"
        assert f"`tiltyard {name}" in table, f"{name} is not in the page's table"
    assert "--unsafe-no-sandbox" in text


def test_every_term_of_the_glossary_has_an_anchor(site: Path) -> None:
    terms = re.findall(r"^### (.+)$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    anchors = read(site / "glossary.html").anchors
    assert {"core", "cell", "breach"} <= anchors
    assert {term.lower().replace(" ", "-") for term in terms} <= anchors


def test_the_reference_has_what_is_public(site: Path) -> None:
    overview = (ROOT / "docs/reference/index.md").read_text(encoding="utf-8")
    anchors = {name for path in pages(site) for name in read(path).anchors}
    for name in tiltyard.__all__:
        there = re.search(rf"\[`{name}`\]\[([\w.]+)\]", overview)
        assert there, f"{name} is not in the overview"
        assert there[1] in anchors
    for package in (attacks, benign, guardrails, inference, judge, search):
        page = read(site / f"reference/{package.__name__.rpartition('.')[2]}.html")
        told = {anchor.rpartition(".")[2] for anchor in page.anchors}
        assert {*package.__all__} <= told
    for part in json_schema()["$defs"]:
        assert part.lower() in read(site / "reference/reporting.html").anchors
