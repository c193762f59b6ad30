"""`tiltyard guard`: the quick way to read its command line, and Typer's."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tiltyard.cli import guard
from tiltyard.cli.guard_start import Given, read_words

SERVER = ("--", "npx", "--yes", "server")


def given_by_typer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Given:
    """Return the options as Typer reads them."""
    found: list[Given] = []

    def note(given: Given) -> Any:
        found.append(given)
        raise typer.Exit(0)

    monkeypatch.setattr(guard, "settings_of", note)
    app = typer.Typer(add_completion=False)
    app.command()(guard.run)
    with pytest.raises(SystemExit):
        app(words)
    return found[0]


@pytest.mark.parametrize(
    "words",
    [
        [*SERVER],
        ["--guardrail", "data flow", *SERVER],
        ["--guardrail=a=b", "--session=", "--server", "files", *SERVER],
        [
            "--overlay",
            "a.toml",
            "--policy",
            "b.toml",
            "--model",
            "c.toml",
            "--record",
            "d",
            *SERVER,
        ],
        ["--said", "One.", "--said=Two.", "--ask", "--shadow", "--unsafe-no-sandbox", *SERVER],
        ["--url", "http://127.0.0.1:1/mcp", "--listen", "127.0.0.1:2"],
        ["--session", "chat", "--said", "Hello."],
        ["--", "server", "--", "--ask"],
    ],
)
def test_the_quick_way_reads_what_typer_reads(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_words(words) == given_by_typer(words, monkeypatch)


@pytest.mark.parametrize(
    "words",
    [
        ["--print-config", "claude", *SERVER],
        ["--unknown", "x", *SERVER],
        ["--guardrail"],
        ["--guardrail", "--ask", *SERVER],
        ["--ask=yes", *SERVER],
        ["--unsafe_no_sandbox", *SERVER],
        ["-h"],
        ["server", "--ask"],
        ["--command", "x"],
    ],
)
def test_anything_unusual_is_left_to_typer(words: list[str]) -> None:
    assert read_words(words) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "name one server"),
        (["server"], "cannot start server"),
        (["--unknown", "--", "server"], "No such option: --unknown"),
        (["--policy", "missing.toml", "--", "server"], "missing.toml: No such file or directory"),
    ],
)
def test_a_wrong_command_ends_with_2(words: list[str], why: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiltyard", "guard", *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert why in done.stderr


def test_the_guard_starts_without_typer_and_msgspec() -> None:
    """Both take longer to import than the guard needs for all else."""
    program = (
        "import sys; sys.argv = ['tiltyard', 'guard']\n"
        "from tiltyard.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({'typer', 'msgspec', 'asyncio', 'secrets'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
    assert "name one server" in done.stderr
