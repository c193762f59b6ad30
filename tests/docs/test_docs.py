"""What the documents show is run: every snippet and every command, page by page, in order.

A page has a directory of its own, with the examples and the fixtures in it. A block with a file's
name for its title is written there; one titled "prints" must stand in what the block before it
printed, line by line, where `…` is anything. A command that is followed by `# ends with 2` does.
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
NEEDED: Final = ("examples", "fixtures", "docs/season")
"""What a reader of a page has at hand."""
KNOWN: Final = {"make", "tiltyard"}
"""Commands that may stand in a page."""
SHOWN: Final = {"json", "text", "toml"}
"""Languages of blocks that are not run."""
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
    """Give a directory in which a page can be followed, and that is gone afterwards."""
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
    """Run a command; of `make`, which runs this, only see that it knows the target."""
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
    """See that every line of a block was printed, in that order."""
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
    """A fence that is indented, or in a language that nobody knows, would not be run."""
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
    trials = 7 * defense.variants
    for sentence in (
        f"raw    = weights, once per core, + {attack.points_per_cell} × cells",
        f"attack = min(1000, raw / {attack.full_marks} × 1000)",
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
    """Yield every number and name of a ruleset as the table writes it; words of search apart."""
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


def test_every_gaming_folder_is_told_of() -> None:
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
    """Commands that stand in the text are not run, but there are such, with these options."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        hooks = importlib.import_module("hooks")
    finally:
        sys.path.pop(0)
    sections = re.split(r"^### ", "\n".join(hooks.tell_commands()), flags=re.MULTILINE)[1:]
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
