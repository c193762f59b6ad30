"""What the documents show is run: every Python snippet, and every command."""

import re
import shlex
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


def commands() -> list[tuple[str, str]]:
    return [
        (where, line.partition(" #")[0].strip())
        for where, block in blocks("bash")
        for line in block.splitlines()
        if line.strip() and not line.startswith("#")
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


@pytest.mark.parametrize(("where", "command"), commands())
def test_commands_run(where: str, command: str) -> None:
    """Run each command; of `make`, which is what runs this, only see that it knows the target."""
    words = shlex.split(command)
    if words[0] == "make":
        words.insert(1, "--dry-run")
    else:
        assert words[0] == "tiltyard", f"{where}: do not know how to run {command}"
        words[0] = str(Path(sys.executable).with_name("tiltyard"))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{where}: {command}: {done.stderr}"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert "://" in target or (document.parent / target).exists(), f"{document}: {target}"
