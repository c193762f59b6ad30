"""Run every snippet and every command of the documents, page by page, in order.

Each page runs in its own directory, which contains the examples and the fixtures. The test writes
a block whose title is a file name to that file. It looks for each line of a block titled "prints"
in the output of the block before it, where `…` matches anything. A comment such as `# ends with 2`
after a command gives its exit code.

Other tests check links, commands within sentences, the length of lines, and the glossary.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from tiltyard.rulesets.ruleset import load_ruleset

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
PROSE: Final = [*PAGES, ROOT / "CHANGELOG.md", *sorted(ROOT.glob("examples/*/README.md"))]
WIDTH: Final = 100
VOCABULARY: Final = (
    *("World", "Scenario", "Tool", "ToolCall", "Agent", "Guardrail", "Decision", "Episode"),
    *("Event", "Trace", "Step", "Predicate", "Finding", "Core", "Cell", "Route", "Breach", "Raw"),
    *("Score", "Submission", "Track", "Match", "Budget", "Ruleset", "Run", "Report", "Opponent"),
    *("Canary", "Rotation", "Counterfactual", "Benign trial", "False positive", "Comparable"),
    *("Practice", "Official", "Key", "League", "Level"),
)
NEEDED: Final = ("examples", "fixtures", "docs/season")
"""Directories that a page's commands may use."""
KNOWN: Final = {"make", "tiltyard"}
"""Commands that a page may contain."""
SHOWN: Final = {"json", "text", "toml"}
"""Languages of blocks that the tests do not run."""
_BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_ENDS: Final = re.compile(r"ends with (\d+)")


class Block(NamedTuple):
    where: str
    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}", *match.groups(""))
        for match in _BLOCK.finditer(text)
    ]


def is_run(page: Path) -> bool:
    return any(block.language not in SHOWN for block in blocks(page))


@contextmanager
def workshop() -> Iterator[Path]:
    """Create a temporary directory with everything that a page's commands need."""
    with tempfile.TemporaryDirectory(prefix="tiltyard-docs-") as name:
        place = Path(name)
        place.chmod(0o755)  # a guest at level B is another user
        for each in NEEDED:
            if (ROOT / each).is_dir():
                shutil.copytree(ROOT / each, place / each)
        yield place


@pytest.mark.parametrize("page", [*filter(is_run, PAGES)], ids=lambda page: page.stem)
def test_a_page_can_be_followed(page: Path) -> None:
    printed = ""
    with workshop() as place:
        for block in blocks(page):
            if block.title == "prints":
                assert_prints(block, printed)
            elif block.title:
                (place / block.title).parent.mkdir(parents=True, exist_ok=True)
                (place / block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                snippet = [sys.executable, "-W", "error", "-c", block.text]
                printed = follow(block.where, snippet, place)
            elif block.language == "bash":
                printed = "".join(run_line(block.where, line, place) for line in lines(block.text))


def lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.strip() and not line.startswith("#"))


def run_line(where: str, line: str, place: Path) -> str:
    """Run a command. For `make`, only check that the target exists: `make test` runs this."""
    command, _, comment = line.partition(" #")
    word, *rest = command.split()
    assert word in KNOWN, f"{where}: do not know how to run {command}"
    ends = _ENDS.search(comment)
    if word == "make":
        return follow(where, ["make", "--dry-run", *rest], ROOT)
    return follow(where, ["bash", "-c", command], place, int(ends[1]) if ends else 0)


def follow(where: str, words: list[str], place: Path, code: int = 0) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=place,
        env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"{where}: {words[-1]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == code, told
    return done.stdout


def assert_prints(block: Block, printed: str) -> None:
    """Check that every line of a block was printed, in that order."""
    left = iter([squeezed(line) for line in printed.splitlines()])
    for line in filter(None, map(squeezed, block.text.splitlines())):
        wanted = re.compile(".*".join(re.escape(part.strip()) for part in line.split("…")))
        told = f"{block.where}: this was not printed: {line}\n{printed}"
        assert any(wanted.search(each) for each in left), told


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_what_a_page_says_is_printed_is_looked_for() -> None:
    said = Block("here", "text", "prints", "two  2\nthree … 3\n")
    assert_prints(said, "one 1\ntwo 2\nthree: 33\n")
    for other in ("two 2", "three: 33\ntwo 2", "two 1\nthree 3"):
        with pytest.raises(AssertionError, match="not printed"):
            assert_prints(said, other)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_is_overlooked(page: Path) -> None:
    """The tests would not run an indented block, or one in an unknown language."""
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^[ \t>]*(?:```|~~~).*$", text, re.MULTILINE)
    opened = fences[::2]
    assert all(fence == "```" for fence in fences[1::2])
    for fence in opened:
        language = re.fullmatch(r'```(\w*)(?: title="[^"]+")?', fence)
        assert language, f"{page.name}: {fence}"
        assert language[1] in {"", "bash", "python", *SHOWN}, f"{page.name}: {fence}"


def test_following_a_page_leaves_nothing_in_the_repository() -> None:
    assert not any((ROOT / name).exists() for name in ("my-submission", "mine", "page.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_too_long(page: Path) -> None:
    found = long_lines(page.read_text(encoding="utf-8"))
    where = [f"{page.relative_to(ROOT)}:{number}: {length}" for number, length in found]
    assert not where, f"wrap these lines at {WIDTH} characters: {where}"


def long_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield number and length of each long line, except tables, code and link definitions."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        is_exempt = fenced or line.startswith("|") or re.match(r"\[[^\]]+\]: ", line)
        if len(line) > WIDTH and not is_exempt:
            yield number, len(line)


def test_long_lines_are_found_outside_tables_and_code() -> None:
    long = "x " * 51
    assert [*long_lines(f"{'x' * 100}\n{long}\n")] == [(2, 102)]
    assert not [*long_lines(f"| {long} |\n\n```text\n{long}\n```\n\n[a]: {long}\n")]
    assert [*long_lines(f"```\n{long}\n```\n{long}\n<p>{long}</p>")] == [(4, 102), (5, 109)]


def test_the_glossary_defines_every_term_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^### (.+)\n\n\w", text, re.MULTILINE)
    assert len(terms) == len({*terms}) == text.count("\n### ")
    assert {*VOCABULARY} <= {*terms}


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_the_glossary_name_a_term(page: Path) -> None:
    headings = re.findall(r"^##+ (.+)$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for anchor in re.findall(r"glossary\.md#([\w-]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors, f"{page.name}: {anchor}"


def test_the_rules_have_every_number_of_the_ruleset() -> None:
    rules = load_ruleset()
    told = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", told, re.MULTILINE))
    assert rules.model is None  # docs/models.md has those of the rulesets with one
    plain = {name: value for name, value in msgspec.to_builtins(rules).items() if value is not None}
    numbers = dict(leaves("", plain))
    assert table == {name: value for name, value in numbers.items() if value}
    attack, defense, limits = rules.attack, rules.defense, rules.limits
    divisor = f"1 + {defense.breach_percent / 100} × breaches"
    lost = f"{defense.false_positive_points} × false positives / benign trials"
    trials = 7 * defense.trials
    for sentence in (
        f"raw    = weights, once per core, + {attack.points_per_cell} × cells",
        f"offense = min(1000, raw / {attack.full_marks} × 1000)",
        f"defense = max(0, 1000 / ({divisor}) − {lost})",
        f"| {attack.steps:,} steps | {rules.search.steps:,} steps for the search, then {trials} ",
        f"leads to at most {rules.play.calls_per_message} calls",
        f"{limits.offense_seconds:,} seconds in offense and {limits.defense_seconds:,} in defense",
        f"{attack.volume_full_marks:,} raw points make 1000",
        f"`--budget quick` gives {rules.quick.attack_steps:,} steps to each side",
        f"the mean over {rules.official.seeds} seeds",
        *(f"| {name} | " for name in attack.weights),
    ):
        assert squeezed(sentence) in squeezed(told)
    weights = dict(re.findall(r"^\| ([A-Z_]+) \| \d \| (\d+) \|", told, re.MULTILINE))
    assert weights == {name: str(weight) for name, weight in attack.weights.items()}


def leaves(prefix: str, tree: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every number and name of a ruleset as the table writes it, except search words."""
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if path in {"name", "version", "search.vocabulary", "search.operators"}:
            continue
        if isinstance(value, dict):
            yield from leaves(f"{path}.", value)
        elif isinstance(value, list | tuple):
            yield path, ", ".join(value)
        else:
            yield path, f"{value:,}" if isinstance(value, int) else str(value)


def test_docs_mention_every_gaming_folder() -> None:
    told = (ROOT / "docs/honest.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\d\d-[\w-]+)` \|", told, re.MULTILINE)
    assert listed == sorted(path.name for path in ROOT.glob("tests/gaming/[0-9][0-9]-*"))


def test_pictures_differ_in_colours_alone() -> None:
    light, dark = (
        (ROOT / f"docs/assets/arena-{name}.svg").read_text(encoding="utf-8")
        for name in ("light", "dark")
    )
    assert light != dark
    colour = re.compile(r"#[0-9a-f]{6}\b")
    assert colour.sub("#", light) == colour.sub("#", dark)


def test_commands_within_sentences_exist() -> None:
    """The tests do not run commands within sentences, but command and options must exist."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        hooks = importlib.import_module("hooks")
    finally:
        sys.path.pop(0)
    sections = re.split(r"^### ", "\n".join(hooks.describe_commands()), flags=re.MULTILINE)[1:]
    known = {section.partition("\n")[0]: section for section in sections}
    found = 0
    for page in PAGES:
        text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
        for command in re.findall(r"`(tiltyard [a-z][^`]*)`", text):
            name = next((name for name in known if f"{command} ".startswith(f"{name} ")), None)
            assert name, f"{page.name}: there is no command {command}"
            for option in re.findall(r"--[a-z-]+", command):
                assert f"`{option}`" in known[name], f"{page.name}: {command} has no {option}"
            found += 1
    assert found
