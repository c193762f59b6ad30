"""What the documents show is run: every Python snippet, and every command."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{document.name}:{text.count(chr(10), 0, match.start()) + 1}", match.group(2))
        for document in DOCUMENTS
        for text in [document.read_text(encoding="utf-8")]
        for match in _BLOCK.finditer(text)
        if match.group(1) == language
    ]


def commands() -> list[tuple[str, list[str]]]:
    return [
        (where, [line.partition(" #")[0].strip() for line in block.splitlines()])
        for where, block in blocks("bash")
    ]


@pytest.mark.parametrize(("where", "code"), blocks("python"))
def test_snippets_run(where: str, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{where}: {done.stderr}"


@pytest.mark.parametrize(("where", "lines"), commands())
def test_commands_run(where: str, lines: list[str], tmp_path: Path) -> None:
    """Run each command of a block; of `make`, which runs this, only see that it knows the target.

    In a directory that has what a reader would point them at, and where nobody minds new files.
    """
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    for command in filter(None, lines):
        words = shlex.split(command)
        if words[0] == "make":
            words.insert(1, "--dry-run")
        else:
            assert words[0] == "tiltyard", f"{where}: do not know how to run {command}"
            words[0] = str(Path(sys.executable).with_name("tiltyard"))
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{where}: {command}: {done.stderr}"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert "://" in target or (document.parent / target).exists(), f"{document}: {target}"
